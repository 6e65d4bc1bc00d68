#include "autotune/io/results.h"

#include <fmt/format.h>

#include <optional>

#include "autotune/io/json_values.h"
#include "kernels/problem.h"

namespace autotune::io {
namespace {

// Typed access to one object; a member that is missing or of another type is remembered.
class Members {
 public:
  explicit Members(const Json& object) : object_(object) {}

  std::string text(const char* key) {
    const Json* value = find(key);
    if (value == nullptr || !value->is_string()) return wrong(key), "";
    return value->get<std::string>();
  }
  double number(const char* key) {
    const Json* value = find(key);
    if (value == nullptr || !value->is_number()) return wrong(key), 0;
    return value->get<double>();
  }
  std::int64_t integer(const char* key) {
    const Json* value = find(key);
    if (value == nullptr || !value->is_number_integer()) return wrong(key), 0;
    return value->get<std::int64_t>();
  }
  template <class T>
  T choice(const char* key, std::optional<T> (*parse)(std::string_view)) {
    const std::optional<T> parsed = parse(text(key));
    if (!parsed) return wrong(key), T{};
    return *parsed;
  }
  // False where absent: results are older than the key.
  bool flag(const char* key) {
    const Json* value = find(key);
    if (value == nullptr) return false;
    if (!value->is_boolean()) return wrong(key), false;
    return value->get<bool>();
  }
  // Null where absent or null.
  const Json* find(const char* key) const {
    const auto place = object_.is_object() ? object_.find(key) : object_.end();
    return object_.is_object() && place != object_.end() && !place->is_null() ? &*place : nullptr;
  }
  std::string_view first_wrong() const { return wrong_; }

 private:
  void wrong(const char* key) {
    if (wrong_.empty()) wrong_ = key;
  }

  const Json& object_;
  std::string_view wrong_;
};

tl::unexpected<Error> bad(const std::string& origin, const std::string& what) {
  return fail(
      ErrorCode::bad_input,
      fmt::format("{}: {}; a result of 'autotune tune --json' or 'autotune bench --json' is "
                  "expected",
                  origin, what));
}

tl::unexpected<Error> no_such_value(std::string_view key) {
  return fail(ErrorCode::bad_input, fmt::format("{} is missing or no such value", key));
}

Expected<Problem> read_problem(const Json& json) {
  Members members(json);
  Problem problem;
  problem.family = members.text("family");
  const DimensionNames names = dimension_names(problem.family);
  problem.m = members.integer(names.m);
  problem.n = members.integer(names.n);
  problem.k = members.integer(names.k);
  problem.dtype = members.choice("dtype", parse_dtype);
  problem.out_dtype = members.choice("out_dtype", parse_dtype);
  problem.layout = members.choice("layout", parse_layout);
  problem.lda = members.integer("lda");
  problem.ldb = members.integer("ldb");
  problem.ldc = members.integer("ldc");
  problem.alpha = members.number("alpha");
  problem.beta = members.number("beta");
  problem.mode = members.choice("mode", parse_timing_mode);
  problem.exact_fp32 = members.flag("exact_fp32");
  // Only of gated families, and results are older than the key.
  if (members.find("activation") != nullptr) {
    problem.activation = members.choice("activation", parse_activation);
  }
  if (!members.first_wrong().empty()) return no_such_value(members.first_wrong());
  return checked(problem);
}

// nullopt where nothing was measured.
Expected<std::optional<TunedEntry>> read_row(const Json& json) {
  Members row(json);
  if (row.find("from_problem") != nullptr) {
    return fail(ErrorCode::bad_input, "this is an answer, not a measurement");
  }
  if (row.find("median_us") == nullptr) return std::nullopt;
  const double median_us = row.number("median_us");
  const std::string text = row.text(row.find("winner") != nullptr ? "winner" : "config");
  const Json* problem_json = row.find("problem");
  if (problem_json == nullptr) return fail(ErrorCode::bad_input, "problem is missing");
  if (!row.first_wrong().empty()) return no_such_value(row.first_wrong());
  if (!(median_us > 0)) return no_such_value("median_us");
  const auto problem = read_problem(*problem_json);
  if (!problem) return tl::unexpected(problem.error());
  const Family* family = find_family(problem->family);
  if (family == nullptr) return fail(ErrorCode::bad_input, "the family is unknown");
  const auto config = parse_config(text, *family);
  if (!config) return tl::unexpected(config.error());
  return TunedEntry{*problem, to_string(*config), median_us};
}

}  // namespace

Expected<TunedFile> parse_results(std::string_view text, const std::string& origin) {
  const Json whole = Json::parse(text, nullptr, false);
  if (whole.is_discarded()) return bad(origin, "this is not JSON");
  Members members(whole);
  TunedFile file{members.text("device"), {}};
  const Json* rows = members.find("rows");
  if (!members.first_wrong().empty() || rows == nullptr || !rows->is_array()) {
    return bad(origin, "device or rows are missing");
  }
  if (members.find("max_sms") != nullptr) {
    return fail(ErrorCode::bad_input,
                fmt::format("{}: these times are of a part of the GPU (--max-sms); results of a "
                            "whole one are expected",
                            origin));
  }
  for (std::size_t i = 0; i < rows->size(); ++i) {
    auto entry = read_row((*rows)[i]);
    if (!entry) return bad(origin, fmt::format("row {}: {}", i + 1, entry.error().message));
    if (*entry) file.entries.push_back(**std::move(entry));
  }
  return file;
}

}  // namespace autotune::io
