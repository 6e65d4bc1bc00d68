#include "autotune/cli/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <utility>

#include "autotune/cli/text.h"
#include "autotune/io/builtin.h"
#include "autotune/io/load.h"
#include "autotune/lookup/ladder.h"
#include "kernels/problem.h"
#include "kernels/stages.h"

namespace autotune::cli {
namespace {

constexpr std::uint64_t kMostJobs = 1024;
constexpr std::uint64_t kLargestInt = std::numeric_limits<int>::max();

tl::unexpected<Error> bad(std::string message) {
  return fail(ErrorCode::bad_input, std::move(message));
}

Expected<const Family*> family_named(std::string_view name) {
  if (const Family* family = find_family(name)) return family;
  return bad(fmt::format("unknown kernel family '{}'; known: {}", name, family_names()));
}

Expected<DType> read_dtype(std::string_view flag, const std::string& text) {
  if (const auto dtype = parse_dtype(text)) return *dtype;
  return bad(fmt::format("{}: '{}' is not one of {}", flag, text, accepted_dtypes()));
}

Expected<Layout> read_layout(const std::string& text) {
  if (const auto layout = parse_layout(text)) return *layout;
  return bad(fmt::format("--layout: '{}' is not one of {}", text, accepted_layouts()));
}

Expected<TimingMode> read_mode(const std::string& text) {
  if (text.empty()) return TimingMode::cold;
  if (const auto mode = parse_timing_mode(text)) return *mode;
  return bad(fmt::format("--mode: '{}' is not one of cold, hot", text));
}

// Which options give a problem its dimensions.
struct Dimensions {
  DimensionNames names;
  std::string Options::*m;
  std::string Options::*n;
  std::string Options::*k;
};
Dimensions dimensions_of(const Family& family) {
  const DimensionNames names = dimension_names(family.name);
  if (family.stages.empty()) return {names, &Options::m, &Options::n, &Options::k};
  return {names, &Options::tokens, &Options::intermediate, &Options::hidden};
}

// Dimensions that other families have.
Expected<void> refuse_foreign(const Options& options, const Family& family) {
  const Dimensions own = dimensions_of(family);
  for (const Family* other : families()) {
    const Dimensions foreign = dimensions_of(*other);
    if (foreign.m == own.m) continue;
    for (const auto& [name, member] : {std::pair{foreign.names.m, foreign.m},
                                       {foreign.names.n, foreign.n},
                                       {foreign.names.k, foreign.k}}) {
      if ((options.*member).empty()) continue;
      return bad(
          fmt::format("--{} does not go with the family {}: its dimensions are --{}, --{} and --{}",
                      name, family.name, own.names.m, own.names.n, own.names.k));
    }
  }
  return {};
}

Expected<void> fill_dimensions(const Options& options, const Family& family, Problem& problem) {
  struct Dimension {
    const char* name;
    const std::string& text;
    std::int64_t& value;
    bool needed;
  };
  if (const auto sound = refuse_foreign(options, family); !sound) return sound;
  const Dimensions own = dimensions_of(family);
  const Dimension dimensions[] = {
      {own.names.m, options.*own.m, problem.m, true},
      {own.names.n, options.*own.n, problem.n, true},
      {own.names.k, options.*own.k, problem.k, true},
      {"lda", options.lda, problem.lda, false},
      {"ldb", options.ldb, problem.ldb, false},
      {"ldc", options.ldc, problem.ldc, false},
  };
  for (const Dimension& dimension : dimensions) {
    const std::string flag = fmt::format("--{}", dimension.name);
    if (dimension.text.empty()) {
      if (!dimension.needed) continue;
      return bad(fmt::format("{} is missing: a problem needs --{}, --{} and --{}", flag,
                             own.names.m, own.names.n, own.names.k));
    }
    const auto value = parse_dimension(flag, dimension.text);
    if (!value) return tl::unexpected(value.error());
    dimension.value = *value;
  }
  return {};
}

Expected<void> fill_types(const Options& options, Problem& problem) {
  if (!options.dtype.empty()) {
    const auto dtype = read_dtype("--dtype", options.dtype);
    if (!dtype) return tl::unexpected(dtype.error());
    problem.dtype = *dtype;
  }
  problem.out_dtype = default_out_dtype(problem.dtype);
  if (!options.out_dtype.empty()) {
    const auto dtype = read_dtype("--out-dtype", options.out_dtype);
    if (!dtype) return tl::unexpected(dtype.error());
    problem.out_dtype = *dtype;
  }
  if (!options.layout.empty()) {
    const auto layout = read_layout(options.layout);
    if (!layout) return tl::unexpected(layout.error());
    problem.layout = *layout;
  }
  problem.exact_fp32 = options.exact_fp32;
  if (!options.activation.empty()) {
    const auto activation = parse_activation(options.activation);
    if (!activation) {
      return bad(fmt::format("--activation: '{}' is not one of {}", options.activation,
                             accepted_activations()));
    }
    problem.activation = *activation;
  }
  return {};
}

Expected<void> fill_scalars(const Options& options, Problem& problem) {
  const auto lowest = std::numeric_limits<double>::lowest();
  if (!options.alpha.empty()) {
    const auto alpha = read_real("--alpha", options.alpha, lowest);
    if (!alpha) return tl::unexpected(alpha.error());
    problem.alpha = *alpha;
  }
  if (!options.beta.empty()) {
    const auto beta = read_real("--beta", options.beta, lowest);
    if (!beta) return tl::unexpected(beta.error());
    problem.beta = *beta;
  }
  const auto mode = read_mode(options.mode);
  if (!mode) return tl::unexpected(mode.error());
  problem.mode = *mode;
  return {};
}

Expected<Problem> read_problem(const Options& options, const Family& family) {
  Problem problem;
  problem.family = family.name;
  if (const auto done = fill_dimensions(options, family, problem); !done) {
    return tl::unexpected(done.error());
  }
  if (const auto done = fill_types(options, problem); !done) return tl::unexpected(done.error());
  if (const auto done = fill_scalars(options, problem); !done) return tl::unexpected(done.error());
  return checked(std::move(problem));
}

// --m FIRST..LAST (--tokens of an MLP), one problem for each rung. The other options are read as
// for one.
Expected<std::vector<Problem>> read_ladder(const Options& options, const Family& family,
                                           std::size_t dots) {
  const Dimensions names = dimensions_of(family);
  const std::string& range = options.*names.m;
  const std::string flag = fmt::format("--{}", names.names.m);
  const auto first = parse_dimension(flag, range.substr(0, dots));
  if (!first) return tl::unexpected(first.error());
  const auto last = parse_dimension(flag, range.substr(dots + 2));
  if (!last) return tl::unexpected(last.error());
  if (*first > *last) {
    return bad(
        fmt::format("{}: {} is an empty range; the smaller number comes first", flag, range));
  }
  std::vector<Problem> problems;
  for (const std::int64_t m : lookup::ladder(*first, *last)) {
    Options rung = options;
    rung.*names.m = std::to_string(m);
    auto problem = read_problem(rung, family);
    if (!problem) return tl::unexpected(problem.error());
    problems.push_back(*std::move(problem));
  }
  return problems;
}

// With a suite, what only one problem can have is an error, not silently dropped.
Expected<void> refuse_beside_suite(const Options& options) {
  const std::pair<const char*, const std::string&> given[] = {
      {"--m", options.m},
      {"--n", options.n},
      {"--k", options.k},
      {"--tokens", options.tokens},
      {"--hidden", options.hidden},
      {"--intermediate", options.intermediate},
      {"--lda", options.lda},
      {"--ldb", options.ldb},
      {"--ldc", options.ldc},
      {"--alpha", options.alpha},
      {"--beta", options.beta},
      {"--out-dtype", options.out_dtype},
      {"--activation", options.activation},
  };
  const auto refused = [](const char* flag) {
    return bad(fmt::format("{} does not go with --suite: the suite gives the problems", flag));
  };
  for (const auto& [flag, text] : given) {
    if (!text.empty()) return refused(flag);
  }
  if (options.exact_fp32) return refused("--exact-fp32");
  return {};
}

// What a problem says of itself is stronger than an option for the whole suite.
template <class T>
void warn_of_kept(T Problem::*member, const std::optional<T>& wanted, const char* name,
                  const io::Suite& suite, Output& output) {
  if (!wanted) return;
  const auto kept =
      std::count_if(suite.entries.begin(), suite.entries.end(),
                    [&](const io::SuiteEntry& entry) { return entry.problem.*member != *wanted; });
  if (kept == 0) return;
  output.warn(fmt::format("--{0}: {1} of {2} {3} own {0}", name, kept,
                          counted(static_cast<std::int64_t>(suite.entries.size()), "problem"),
                          kept == 1 ? "keeps its" : "keep their"));
}

Expected<Request> read_suite(const Options& options, Output& output) {
  if (const auto sound = refuse_beside_suite(options); !sound) {
    return tl::unexpected(sound.error());
  }
  io::SuiteOverrides overrides;
  if (!options.dtype.empty()) {
    const auto dtype = read_dtype("--dtype", options.dtype);
    if (!dtype) return tl::unexpected(dtype.error());
    overrides.dtype = *dtype;
  }
  if (!options.layout.empty()) {
    const auto layout = read_layout(options.layout);
    if (!layout) return tl::unexpected(layout.error());
    overrides.layout = *layout;
  }
  const auto suite = io::load_suite(options.suite, overrides);
  if (!suite) return bad("--suite " + suite.error().message);
  if (!options.family.empty() && options.family != suite->family) {
    return bad(fmt::format("--suite {} is of the family {}, not {}; leave the family out",
                           options.suite, suite->family, options.family));
  }
  const auto family = family_named(suite->family);
  if (!family) return tl::unexpected(family.error());

  Request request{*family, {}, suite->name};
  const auto mode = read_mode(options.mode);
  if (!mode) return tl::unexpected(mode.error());
  warn_of_kept(&Problem::dtype, overrides.dtype, "dtype", *suite, output);
  warn_of_kept(&Problem::layout, overrides.layout, "layout", *suite, output);
  for (const io::SuiteEntry& entry : suite->entries) {
    request.problems.push_back(entry.problem);
    if (!options.mode.empty()) request.problems.back().mode = *mode;
  }
  return request;
}

}  // namespace

Expected<Request> read_request(const Options& options, Output& output, Ladder ladder) {
  if (!options.suite.empty()) return read_suite(options, output);
  if (options.family.empty()) {
    return bad(fmt::format("name a kernel family ({}) or --suite NAME|FILE", family_names()));
  }
  const auto family = family_named(options.family);
  if (!family) return tl::unexpected(family.error());
  const Dimensions names = dimensions_of(**family);
  const std::string& rows = options.*names.m;
  if (const auto dots = rows.find(".."); dots != std::string::npos) {
    if (ladder == Ladder::refused) {
      return bad(fmt::format(
          "--{}: {} is several problems, which tune, bench and bundle take; give one number here",
          names.names.m, rows));
    }
    auto problems = read_ladder(options, **family, dots);
    if (!problems) return tl::unexpected(problems.error());
    return Request{*family, *std::move(problems), ""};
  }
  auto problem = read_problem(options, **family);
  if (!problem) return tl::unexpected(problem.error());
  return Request{*family, {*std::move(problem)}, ""};
}

void drop_idle_cap(search::Limits& limits, const DeviceSpec& device) {
  if (limits.max_sms >= device.sm_count) limits.max_sms = 0;
}

io::CapsJson caps_json(const search::Limits& limits) { return {limits.max_sms, limits.max_smem}; }

std::string caps_text(const search::Limits& limits) {
  std::vector<std::string> caps;
  if (limits.max_sms > 0) caps.push_back(counted(limits.max_sms, "SM"));
  if (limits.max_smem > 0) {
    caps.push_back(grouped(limits.max_smem) + " bytes of shared memory per block");
  }
  return caps.empty() ? "" : fmt::format(" with at most {}", fmt::join(caps, " and "));
}

Expected<search::Limits> read_limits(const Options& options, const Family& family) {
  search::Limits limits;
  limits.keep_slow = options.keep_slow;
  const char* const environment = std::getenv("AUTOTUNE_MAX_SMEM");
  const bool given = !options.max_smem.empty();
  const std::string max_smem = given || environment == nullptr ? options.max_smem : environment;
  if (!max_smem.empty()) {
    const auto bytes =
        read_count(given ? "--max-smem" : "AUTOTUNE_MAX_SMEM", max_smem, 1, kLargestInt);
    if (!bytes) return tl::unexpected(bytes.error());
    limits.max_smem = static_cast<std::int64_t>(*bytes);
  }
  if (!options.max_sms.empty()) {
    const auto sms = read_count("--max-sms", options.max_sms, 1, kLargestInt);
    if (!sms) return tl::unexpected(sms.error());
    limits.max_sms = static_cast<int>(*sms);
  }
  for (const std::string& text : options.excludes) {
    auto pattern = parse_pattern(text, family);
    if (!pattern) return bad("--exclude " + pattern.error().message);
    limits.excludes.push_back(*std::move(pattern));
  }
  return limits;
}

Expected<search::Space> read_space(const Options& options, const Family& family) {
  const Family& first = stage_of(family, 0);
  if (options.space.empty()) {
    if (const search::Space* space = io::default_space(first.name)) return *space;
    return bad(
        fmt::format("no search space is built in for {}; give one with --space FILE", first.name));
  }
  auto space = io::load_space(options.space);
  if (!space) return tl::unexpected(space.error());
  const bool serves =
      space->family == first.name ||
      std::any_of(family.stages.begin(), family.stages.end(),
                  [&](const Family* stage) { return stage->name == space->family; });
  if (!serves) {
    return bad(fmt::format("--space {} is of the family {}, not {}", options.space, space->family,
                           family.name));
  }
  return space;
}

Expected<std::uint64_t> read_seed(const Options& options) {
  if (options.seed.empty()) return 1;
  return read_count("--seed", options.seed, 0, std::numeric_limits<std::uint64_t>::max());
}

Expected<int> read_jobs(const Options& options) {
  if (options.jobs.empty()) return 0;
  const auto jobs = read_count("--jobs", options.jobs, 1, kMostJobs);
  if (!jobs) return tl::unexpected(jobs.error());
  return static_cast<int>(*jobs);
}

Expected<std::uint64_t> read_count(std::string_view flag, const std::string& text, std::uint64_t lo,
                                   std::uint64_t hi) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < lo || value > hi) {
    return bad(fmt::format("{}: '{}' is not a whole number from {} to {}", flag, text, lo, hi));
  }
  return value;
}

Expected<double> read_real(std::string_view flag, const std::string& text, double lo) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value)) {
    return bad(fmt::format("{}: '{}' is not a number", flag, text));
  }
  if (value < lo) return bad(fmt::format("{}: {} is less than {}", flag, text, lo));
  return value;
}

}  // namespace autotune::cli
