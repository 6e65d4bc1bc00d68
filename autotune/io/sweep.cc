#include "autotune/io/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <type_traits>
#include <unordered_set>

#include "autotune/io/load.h"
#include "kernels/kernel.h"
#include "kernels/problem.h"

namespace autotune::io {
namespace {

constexpr std::string_view kFirstLine = "sweep 1";
constexpr std::string_view kExtension = ".sweep";

// The part up to the next `separator`; `text` keeps what is behind it.
std::string_view cut(std::string_view& text, char separator) {
  const std::size_t at = text.find(separator);
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return part;
}

template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(value)) return std::nullopt;
  }
  return value;
}

std::map<std::string, std::string> assignments(std::string_view text) {
  std::map<std::string, std::string> values;
  while (!text.empty()) {
    std::string_view value = cut(text, ' ');
    const std::string name{cut(value, '=')};
    values[name] = value;
  }
  return values;
}

std::string problem_text(const Problem& p) {
  const std::string gate =
      is_gated(p) ? fmt::format(" activation={}", to_string(p.activation)) : "";
  return fmt::format(
      "family={} m={} n={} k={} lda={} ldb={} ldc={} dtype={} out_dtype={} layout={} alpha={} "
      "beta={} mode={}{}{}",
      p.family, p.m, p.n, p.k, p.lda, p.ldb, p.ldc, to_string(p.dtype), to_string(p.out_dtype),
      to_string(p.layout), p.alpha, p.beta, to_string(p.mode), p.exact_fp32 ? " exact_fp32=1" : "",
      gate);
}

std::optional<Problem> parse_problem(std::string_view text) {
  const auto values = assignments(text);
  Problem problem;
  bool good = true;
  const auto read = [&](const char* name, auto& field, auto parse) {
    const auto found = values.find(name);
    const auto value = found == values.end() ? std::nullopt : parse(found->second);
    if (value) {
      field = *value;
    } else {
      good = false;
    }
  };
  const auto word = [](const std::string& value) { return std::optional(value); };
  read("family", problem.family, word);
  for (const auto& [name, field] :
       {std::pair("m", &problem.m), std::pair("n", &problem.n), std::pair("k", &problem.k),
        std::pair("lda", &problem.lda), std::pair("ldb", &problem.ldb),
        std::pair("ldc", &problem.ldc)}) {
    read(name, *field, number<std::int64_t>);
  }
  read("dtype", problem.dtype, parse_dtype);
  read("out_dtype", problem.out_dtype, parse_dtype);
  read("layout", problem.layout, parse_layout);
  read("alpha", problem.alpha, number<double>);
  read("beta", problem.beta, number<double>);
  read("mode", problem.mode, parse_timing_mode);
  // Files are older than the field.
  const auto exact = values.find("exact_fp32");
  problem.exact_fp32 = exact != values.end() && exact->second == "1";
  if (is_gated(problem)) read("activation", problem.activation, parse_activation);
  const auto sound = good ? checked(problem) : Expected<Problem>(fail(ErrorCode::bad_input, ""));
  return sound ? std::optional(*sound) : std::nullopt;
}

std::string underscored(std::string text) {
  std::replace(text.begin(), text.end(), ' ', '_');
  return text;
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& origin) : text_(text), origin_(origin) {}

  Expected<Sweep> parse() {
    // What ends in no line feed was cut off when the run was ended.
    text_ = text_.substr(0, text_.rfind('\n') + 1);
    if (line() != kFirstLine) return wrong("the first line of a sweep file is 'sweep 1'");
    while (!text_.empty()) {
      if (auto read = read_line(line()); !read) return tl::unexpected(read.error());
    }
    if (family_ == nullptr || sweep_.reference.kernel == nullptr || sweep_.device.empty()) {
      return wrong("the file ends before it names device, problem and reference");
    }
    return std::move(sweep_);
  }

 private:
  tl::unexpected<Error> wrong(const std::string& what) const {
    return fail(ErrorCode::bad_input, fmt::format("{}:{}: {}", origin_, number_, what));
  }

  std::string_view line() {
    ++number_;
    return cut(text_, '\n');
  }

  Expected<void> read_line(std::string_view rest) {
    const std::string_view word = cut(rest, ' ');
    if (word == "device") {
      sweep_.device = rest;
    } else if (word == "space") {
      sweep_.space = rest;
    } else if (word == "run") {
      return read_run(rest);
    } else if (word == "problem") {
      const auto problem = parse_problem(rest);
      family_ = problem ? find_family(problem->family) : nullptr;
      if (family_ == nullptr) return wrong("this is no problem of a known family");
      sweep_.problem = *problem;
    } else if (family_ == nullptr) {
      return wrong(fmt::format("'{}' stands before the problem", word));
    } else if (word == "reference") {
      const auto config = parse_config(rest, *family_);
      if (!config) return wrong(config.error().message);
      sweep_.reference = *config;
    } else if (word == "kernel") {
      return read_kernel(rest);
    } else {
      return read_row(word, rest);
    }
    return {};
  }

  Expected<void> read_run(std::string_view rest) {
    auto values = assignments(rest);
    const auto seed = number<std::uint64_t>(values["seed"]);
    if (!seed) return wrong("a run has date, driver, compiler and seed");
    std::string compiler = values["compiler"];
    std::replace(compiler.begin(), compiler.end(), '_', ' ');
    sweep_.runs.push_back({values["date"], values["driver"], compiler, *seed});
    return {};
  }

  Expected<void> read_kernel(std::string_view rest) {
    const std::string_view name = cut(rest, ' ');
    Columns columns{find_kernel(*family_, name), {}};
    if (columns.kernel == nullptr) return wrong(fmt::format("there is no kernel '{}'", name));
    const auto parameters = columns.kernel->parameters();
    while (!rest.empty()) {
      const std::string_view parameter = cut(rest, ',');
      const auto found = std::find_if(parameters.begin(), parameters.end(),
                                      [&](const Parameter& p) { return p.name == parameter; });
      if (found == parameters.end()) {
        return wrong(fmt::format("kernel {} has no parameter '{}'", name, parameter));
      }
      columns.parameters.push_back(static_cast<std::size_t>(found - parameters.begin()));
    }
    columns_[std::string(name)] = std::move(columns);
    return {};
  }

  Expected<void> read_row(std::string_view kernel, std::string_view rest) {
    const auto columns = columns_.find(std::string(kernel));
    if (columns == columns_.end()) {
      return wrong(fmt::format("'{}' is neither a keyword nor a kernel named before", kernel));
    }
    SweepRow row;
    row.config.kernel = columns->second.kernel;
    const auto parameters = row.config.kernel->parameters();
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      row.config.values[p] = parameters[p].fallback;
    }
    std::string_view values = cut(rest, ' ');
    for (const std::size_t p : columns->second.parameters) {
      const auto value = number<std::int32_t>(cut(values, ','));
      if (!value || *value < parameters[p].lo || *value > parameters[p].hi) {
        return wrong(fmt::format("no value for {}", parameters[p].name));
      }
      row.config.values[p] = *value;
    }
    const std::string_view figure = cut(rest, ' ');
    if (const auto outcome = parse_outcome(figure); outcome && *outcome != Outcome::ok) {
      row.outcome = *outcome;
    } else {
      const auto ratio = number<double>(figure);
      const auto reference = number<double>(rest);
      if (!ratio || !reference || !(*ratio > 0) || !(*reference > 0)) {
        return wrong("a row ends in two positive numbers or an outcome");
      }
      row.ratio = *ratio;
      row.reference_us = *reference;
    }
    if (!values.empty() || !seen_.insert(row.config).second) {
      return wrong("too many values, or a config that stood before");
    }
    sweep_.rows.push_back(row);
    return {};
  }

  struct Columns {
    const HostTwin* kernel;
    std::vector<std::size_t> parameters;
  };

  std::string_view text_;
  const std::string& origin_;
  int number_ = 0;
  const Family* family_ = nullptr;
  std::map<std::string, Columns> columns_;
  std::unordered_set<Config, ConfigHash> seen_;
  Sweep sweep_;
};

}  // namespace

double Sweep::reference_us() const {
  std::vector<double> times;
  for (const SweepRow& row : rows) {
    if (row.outcome == Outcome::ok) times.push_back(row.reference_us);
  }
  if (times.empty()) return 0;
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

Expected<Sweep> parse_sweep(std::string_view text, const std::string& origin) {
  return Parser(text, origin).parse();
}

Expected<Sweep> load_sweep(const std::filesystem::path& file) {
  const auto text = read_file(file);
  if (!text) return tl::unexpected(text.error());
  return parse_sweep(*text, file.string());
}

Expected<std::vector<std::filesystem::path>> sweep_files(
    const std::filesystem::path& file_or_folder) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  if (!std::filesystem::is_directory(file_or_folder, error)) {
    files.push_back(file_or_folder);
  } else {
    for (const auto& entry : std::filesystem::directory_iterator(file_or_folder, error)) {
      if (entry.path().extension() == kExtension) files.push_back(entry.path());
    }
  }
  if (files.empty()) {
    return fail(ErrorCode::bad_input,
                fmt::format("{}: holds no *{} file", file_or_folder.string(), kExtension));
  }
  std::sort(files.begin(), files.end());
  return files;
}

Expected<std::vector<Sweep>> load_sweeps(const std::filesystem::path& file_or_folder) {
  const auto files = sweep_files(file_or_folder);
  if (!files) return tl::unexpected(files.error());
  std::vector<Sweep> sweeps;
  for (const std::filesystem::path& file : *files) {
    auto sweep = load_sweep(file);
    if (!sweep) return tl::unexpected(sweep.error());
    sweeps.push_back(*std::move(sweep));
  }
  return sweeps;
}

std::string sweep_file_name(const Problem& problem) {
  std::string name = describe(problem);  // names a family that is not the first by itself
  if (problem.family == Problem{}.family) name = problem.family + "_" + name;
  for (char& letter : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '.';
    if (!plain) letter = '_';
  }
  return name + std::string(kExtension);
}

std::string SweepText::header(const Sweep& sweep) const {
  return fmt::format("{}\ndevice {}\nproblem {}\nspace {}\nreference {}\n", kFirstLine,
                     sweep.device, problem_text(sweep.problem), sweep.space,
                     to_string(sweep.reference));
}

std::string SweepText::run(const SweepRun& run) const {
  return fmt::format("run date={} driver={} compiler={} seed={}\n", run.date, run.driver,
                     underscored(run.compiler), run.seed);
}

std::string SweepText::row(const SweepRow& row) {
  const HostTwin& kernel = *row.config.kernel;
  std::string text;
  if (kernels_.insert(kernel.name()).second) {
    std::string names;
    for (const Parameter& parameter : kernel.parameters()) {
      names += fmt::format("{}{}", names.empty() ? "" : ",", parameter.name);
    }
    text = fmt::format("kernel {} {}\n", kernel.name(), names);
  }
  text += fmt::format("{} ", kernel.name());
  for (std::size_t p = 0; p < kernel.parameters().size(); ++p) {
    text += fmt::format("{}{}", p == 0 ? "" : ",", row.config.values[p]);
  }
  return text + (row.outcome == Outcome::ok
                     ? fmt::format(" {:.5g} {:.4g}\n", row.ratio, row.reference_us)
                     : fmt::format(" {}\n", to_string(row.outcome)));
}

std::string SweepText::whole(const Sweep& sweep) {
  std::string text = header(sweep);
  for (const SweepRun& each : sweep.runs) text += run(each);
  for (const SweepRow& each : sweep.rows) text += row(each);
  return text;
}

std::string sweep_text(const Sweep& sweep) { return SweepText().whole(sweep); }

}  // namespace autotune::io
