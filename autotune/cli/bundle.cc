// `autotune bundle`: winners and their code in one file, for programs that run elsewhere.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "autotune/cli/command.h"
#include "autotune/cli/device_choice.h"
#include "autotune/cli/open_store.h"
#include "autotune/cli/request.h"
#include "autotune/cli/target_file.h"
#include "autotune/cli/text.h"
#include "autotune/io/builtin.h"
#include "autotune/io/json.h"
#include "autotune/lookup/answer.h"
#include "autotune/lookup/bundle_maker.h"
#include "kernels/problem.h"

namespace autotune::cli {
namespace {

bool is_tuned(const lookup::BundleRow& row) { return row.best.match == Match::exact; }

void print_rows(const lookup::MadeBundle& made, Output& output) {
  Table table({{"problem", Table::Align::left},
               {"match", Table::Align::left},
               {"code", Table::Align::left},
               {"config", Table::Align::left}});
  for (const lookup::BundleRow& row : made.rows) {
    table.add({describe(row.best.problem), std::string(to_string(row.best.match)),
               row.compiled ? "compiled" : "stored", row.best.config});
  }
  output.text(table.str());
}

// A problem that nothing fits, and why.
using Unfit = std::pair<Problem, Error>;

// Takes those that nothing fits out of `problems`. Warns of all but the first, with whose error the
// command ends.
std::vector<Unfit> take_unfit(std::vector<Problem>& problems, const DeviceSpec& device,
                              const cache::Store* store, Output& output) {
  const lookup::Sources sources{store, io::tuned_entries()};
  std::vector<Unfit> unfit;
  std::erase_if(problems, [&](const Problem& problem) {
    const auto best = lookup::answer(problem, device, sources);
    if (best) return false;
    if (!unfit.empty()) output.warn(best.error().message);
    unfit.emplace_back(problem, best.error());
    return true;
  });
  return unfit;
}

io::BundleJson document_of(const lookup::MadeBundle& made, const std::vector<Unfit>& unfit,
                           const std::string& file, std::int64_t bytes) {
  const cache::BundleInfo& info = made.bundle.info();
  io::BundleJson document{file, info.device, info.arch, bytes, {}};
  for (const lookup::BundleRow& row : made.rows) {
    document.rows.push_back({row.best.problem, row.best.config,
                             std::string(to_string(row.best.match)), row.best.from_problem,
                             row.compiler, row.compiled});
  }
  for (const auto& [problem, error] : unfit) {
    io::BundleRowJson& row = document.rows.emplace_back();
    row.problem = problem;
    row.error = error.message;
  }
  return document;
}

void warn_of_untuned(const lookup::MadeBundle& made, Output& output) {
  const auto untuned = std::count_if(made.rows.begin(), made.rows.end(),
                                     [](const auto& row) { return !is_tuned(row); });
  if (untuned == 0) return;
  output.warn(
      fmt::format("{} of {} never tuned on {}: the bundle holds the best guess ('autotune "
                  "tune' first)",
                  counted(untuned, "problem"), made.rows.size(), made.bundle.info().device));
}

// Before anything is compiled for it.
Expected<void> check_target(const std::string& file) {
  const auto may = cache::Bundle::check_place(file);
  if (!may) return fail(may.error().code, "--output: " + may.error().message);
  return check_replaceable("--output", file);
}

Expected<int> run(const Options& options, Output& output) {
  if (options.bundle.empty()) {
    return fail(ErrorCode::bad_input, "bundle: --output is missing: give the file to write");
  }
  auto request = read_request(options, output, Ladder::taken);
  if (!request) return tl::unexpected(request.error());
  const auto device = choose_device(options, Need::description);
  if (!device) return tl::unexpected(device.error());
  if (const auto may = check_target(options.bundle); !may) return tl::unexpected(may.error());
  const auto store = open_store(options, cache::Access::read_only, output);
  if (!store) return tl::unexpected(store.error());

  const DeviceSpec& spec = device->spec;
  const cache::Store* known = *store ? &**store : nullptr;
  const std::vector<Unfit> unfit = take_unfit(request->problems, spec, known, output);
  if (request->problems.empty()) return tl::unexpected(unfit.front().second);
  const cache::BundleInfo info{spec.name,      fingerprint(spec), spec.limits.arch,
                               request->suite, AUTOTUNE_VERSION,  std::time(nullptr)};
  const auto made =
      lookup::make_bundle(info, request->problems, spec, known, [&](const BestConfig& best) {
        output.text(fmt::format("compiling {} for {}\n", best.config, spec.limits.arch));
      });
  if (!made) return tl::unexpected(made.error());
  if (auto written = made->bundle.write(options.bundle); !written) {
    return tl::unexpected(written.error());
  }
  std::error_code ignored;
  const auto bytes = static_cast<std::int64_t>(std::filesystem::file_size(options.bundle, ignored));
  print_rows(*made, output);
  warn_of_untuned(*made, output);
  output.result(fmt::format("{}: {} for {} ({}), {} bytes\n", options.bundle,
                            counted(static_cast<std::int64_t>(made->rows.size()), "problem"),
                            spec.name, spec.limits.arch, grouped(bytes)));
  if (const auto done = output.json(document_of(*made, unfit, options.bundle, bytes)); !done) {
    return tl::unexpected(done.error());
  }
  if (!unfit.empty()) return tl::unexpected(unfit.front().second);
  return kExitDone;
}

}  // namespace

const Command kBundleCommand = {
    "bundle",
    "Write winners and their compiled code into one file that programs start from",
    "  autotune bundle --suite gemm --device nvidia-h200 -o h200.bundle\n"
    "  autotune bundle gemm --m 4096 --n 4096 --k 4096 --device nvidia-h200 -o one.bundle\n"
    "  autotune bundle gemm --m 1..8192 --n 4096 --k 4096 --device nvidia-h200 -o tokens.bundle",
    kFamily | kSuite | kProblem | kDevice | kBundle | kCache | kOutput,
    run,
};

}  // namespace autotune::cli
