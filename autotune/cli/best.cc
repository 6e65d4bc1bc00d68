// `autotune best`: what the library would answer for a problem, and how good the match is.
#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "autotune/cli/command.h"
#include "autotune/cli/device_choice.h"
#include "autotune/cli/open_store.h"
#include "autotune/cli/request.h"
#include "autotune/cli/text.h"
#include "autotune/io/builtin.h"
#include "autotune/io/json.h"
#include "autotune/lookup/answer.h"

namespace autotune::cli {
namespace {

std::string match_text(const BestConfig& best) {
  switch (best.match) {
    case Match::exact:
      return "exact: tuned for this problem on this GPU";
    case Match::nearest_problem:
      return "nearest_problem: tuned on this GPU for " + best.from_problem;
    case Match::other_device:
      return "other_device: tuned for " + best.from_problem;
    case Match::default_config:
      break;
  }
  if (best.from_problem.empty()) return "default: the performance model's choice, never measured";
  return "default: the performance model's choice for one kernel, never measured; the other's was "
         "tuned for " +
         best.from_problem;
}

// Whose time is known: that of what the config was tuned for.
std::string time_text(const BestConfig& best, bool capped) {
  std::string text = microseconds(best.median_us) + " when tuned";
  if (best.match == Match::nearest_problem) text += " for that problem";
  if (best.match == Match::other_device) text += " there";
  return text + (capped ? ", with all SMs; not measured with --max-sms" : "");
}

// `capped`: --max-sms leaves the config fewer SMs than its time was measured with: winners are
// those of whole GPUs.
io::BestRowJson row_of(const BestConfig& best, bool capped) {
  io::BestRowJson row{best.problem, best.config, std::string(to_string(best.match)),
                      best.from_problem};
  (capped ? row.all_sms_us : row.median_us) = best.median_us;
  return row;
}

// `caps`: caps_text().
void print(const BestConfig& best, bool capped, const std::string& caps, Output& output) {
  if (output.quiet()) {
    output.result(best.config + "\n");
    return;
  }
  Table table({{"", Table::Align::left}, {"", Table::Align::left}});
  table.add({"config", best.config});
  table.add({"match", match_text(best)});
  if (best.median_us > 0) table.add({"measured", time_text(best, capped)});
  output.result(
      fmt::format("{} on {}{}\n{}", titled(best.problem), best.device, caps, table.str()));
}

Expected<int> run(const Options& options, Output& output) {
  const auto request = read_request(options, output);
  if (!request) return tl::unexpected(request.error());
  const auto device = choose_device(options, Need::description);
  if (!device) return tl::unexpected(device.error());

  auto limits = read_limits(options, *request->family);
  if (!limits) return tl::unexpected(limits.error());
  drop_idle_cap(*limits, device->spec);
  const auto space = read_space(options, *request->family);
  if (!space) return tl::unexpected(space.error());
  const bool capped = limits->max_sms > 0;
  const std::string caps = caps_text(*limits);
  io::BestJson document{device->spec.name, std::nullopt, {}, caps_json(*limits)};
  const lookup::Bounds bounds{&*space, *std::move(limits)};

  const auto store = open_store(options, cache::Access::read_only, output);
  if (!store) return tl::unexpected(store.error());
  lookup::Recollection recollection;
  lookup::Sources sources{*store ? &**store : nullptr, io::tuned_entries()};
  sources.recollection = &recollection;
  sources.left_out = options.left_out;

  if (!request->suite.empty()) document.suite = request->suite;
  std::optional<Error> first;
  for (const Problem& problem : request->problems) {
    const auto best = lookup::answer(problem, device->spec, sources, bounds);
    if (best) {
      document.rows.push_back(row_of(*best, capped));
      print(*best, capped, caps, output);
      continue;
    }
    io::BestRowJson& row = document.rows.emplace_back();
    row.problem = problem;
    row.error = best.error().message;
    if (!first) {
      first = best.error();
    } else {
      output.warn(best.error().message);
    }
  }
  if (const auto& trouble = recollection.trouble()) {
    output.warn(trouble->message + "; answered without what is stored there");
  }
  if (const auto done = output.json(document); !done) return tl::unexpected(done.error());
  if (first) return tl::unexpected(*std::move(first));
  return kExitDone;
}

}  // namespace

const Command kBestCommand = {
    "best",
    "Show the best known config of a problem, and how well it matches",
    "  autotune best gemm --m 4096 --n 4096 --k 4096\n"
    "  autotune best gemm --m 1 --n 4096 --k 4096 --device nvidia-h200 -q\n"
    "  autotune best --suite gemm --device nvidia-h200 --json -",
    kFamily | kSuite | kProblem | kDevice | kSpace | kMaxSms | kLeftOut | kCache | kOutput,
    run,
};

}  // namespace autotune::cli
