#include "autotune/cli/bench_baseline.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "autotune/cli/config_choice.h"
#include "kernels/stages.h"

namespace autotune::cli {
namespace {

constexpr std::string_view kFlag = "--baseline";

// "mma", "mma:block_m=64", "mma + mma"; also a slip such as "mna:block_m=64", which is told as one.
bool looks_like_config(const std::string& text, const Family& family) {
  const std::size_t colon = text.find(':');
  const std::size_t end = std::min(colon, text.find(kJoint));
  return find_kernel(stage_of(family, 0), text.substr(0, end)) != nullptr ||
         (colon != std::string::npos && !std::filesystem::exists(text));
}

Expected<std::optional<Config>> winner_of(const Problem& problem, const cache::Store& store,
                                          const Family& family, const DeviceSpec& device) {
  const auto winner = store.known_winner(problem_key(problem), fingerprint(device));
  if (!winner) return tl::unexpected(winner.error());
  if (!*winner) return std::nullopt;
  const auto config = parse_config((*winner)->config, family);
  if (!config) return tl::unexpected(config.error());
  return *config;
}

}  // namespace

Expected<BenchBaseline> read_bench_baseline(const Options& options, const Family& family) {
  const std::string& text = options.baseline;
  BenchBaseline baseline;
  if (text.empty() || text == "none") return baseline;
  if (text == "cublas") {
    baseline.cublas = true;
    return baseline;
  }
  if (looks_like_config(text, family)) {
    const auto config = choose_config(kFlag, text, family, nullptr);
    if (!config) return tl::unexpected(config.error());
    baseline.config = text;
    return baseline;
  }
  if (!std::filesystem::exists(text)) {
    return fail(ErrorCode::bad_input,
                fmt::format("{}: '{}' is not one of cublas, none, a config such as "
                            "mma:block_m=128, or the file of another cache",
                            kFlag, text));
  }
  auto store = cache::Store::open(text, cache::Access::read_only);
  if (!store) {
    Error error = store.error();
    error.message = fmt::format("{}: {}", kFlag, error.message);
    return tl::unexpected(std::move(error));
  }
  baseline.winners = *std::move(store);
  return baseline;
}

Expected<void> add_baselines(const BenchBaseline& baseline, const Family& family,
                             const DeviceSpec& device, const lookup::Bounds& bounds, Output& output,
                             std::vector<tune::BenchItem>& items) {
  for (tune::BenchItem& item : items) {
    if (!baseline.config.empty()) {
      const auto config = choose_for(kFlag, baseline.config, item.problem, device, bounds);
      if (!config) return tl::unexpected(config.error());
      item.baseline = *config;
    } else if (baseline.winners) {
      const auto winner = winner_of(item.problem, *baseline.winners, family, device);
      if (!winner) return tl::unexpected(winner.error());
      item.baseline = *winner;
      if (!*winner) {
        output.warn(
            fmt::format("{}: no winner of {} there; timed alone", kFlag, describe(item.problem)));
      }
    }
  }
  return {};
}

}  // namespace autotune::cli
