#include "autotune/cli/app.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "autotune/cli/command.h"
#include "autotune/cli/manual.h"
#include "autotune/cli/open_store.h"
#include "autotune/cli/target_file.h"
#include "autotune/io/json.h"

namespace autotune::cli {
namespace {

const Command* const kCommands[] = {
    &kDevicesCommand, &kPlanCommand,   &kExplainCommand,   &kTuneCommand,
    &kBenchCommand,   &kBestCommand,   &kBundleCommand,    &kCacheCommand,
    &kSweepCommand,   &kReplayCommand, &kCalibrateCommand, &kWorkerCommand,
};

constexpr const char* kDescription =
    "Finds the fastest configuration of a GPU kernel for one GPU and one problem, and never "
    "compiles\nor launches one that cannot run.";

constexpr const char* kFooter =
    "Start with:\n"
    "  autotune plan gemm --m 4096 --n 4096 --k 4096 --device nvidia-h200   (no GPU needed)\n"
    "  autotune tune gemm --m 4096 --n 4096 --k 4096\n"
    "'autotune COMMAND --help' has the options and examples of a command.\n"
    "Exit codes: 0 done, 1 failed, 2 bad input, 3 nothing fits, 4 no GPU or compiler, 130 Ctrl-C.";

int report(std::ostream& err, const Error& error) {
  err << "autotune: " << error.message << "\n";
  return exit_code_of(error.code);
}

// `code`, where what was done is also written.
int written(int code, const Streams& streams) {
  if (code != kExitDone || streams.out.flush()) return code;
  return report(streams.err, {ErrorCode::io_failed, "the result could not be written to stdout"});
}

std::string command_names() {
  std::string names;
  for (const Command* command : kCommands) {
    if (command->hidden) continue;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", command->name);
  }
  return names;
}

// CLI11's own texts name the option and go on "At Most 1 required but received 2".
std::string value_text(const CLI::App& at, const std::string& text) {
  const std::size_t begin = text.find('-');
  if (begin == std::string::npos) return text;
  const std::string name = text.substr(begin, text.find_first_of(": ", begin) - begin);
  const CLI::Option* option = at.get_option_no_throw(name);
  if (option == nullptr) return text;
  const int most = option->get_items_expected_max();
  if (most == 0) return name + " takes no value";
  if (most == 1 && option->count() > 1) {
    return fmt::format("{} is given {} times; give it once", name, option->count());
  }
  return fmt::format("{0} needs a value: {0} {1}", name, option->get_type_name());
}

// CLI11 lists what it did not expect in an order of its own.
std::string parse_text(const CLI::App& at, const CLI::ParseError& error) {
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr ||
      dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) {
    return value_text(at, error.what());
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&error) == nullptr) return error.what();
  const std::vector<std::string> extras = at.remaining();
  const auto option = std::find_if(extras.begin(), extras.end(),
                                   [](const std::string& text) { return text.starts_with('-'); });
  if (option != extras.end()) return fmt::format("unknown option '{}'", *option);
  return extras.empty() ? error.what() : fmt::format("unexpected argument '{}'", extras.front());
}

// CLI11 would only say that one is required. Of options, `app` has those that stand alone.
Expected<void> check_command(const CLI::App& app, const std::vector<std::string>& args) {
  if (args.empty()) return fail(ErrorCode::bad_input, "name a command: " + command_names());
  if (args.front().starts_with('-')) {
    if (app.get_option_no_throw(args.front()) != nullptr) return {};
    return fail(ErrorCode::bad_input,
                fmt::format("unknown option '{}' before a command; a command's options come after "
                            "its name",
                            args.front()));
  }
  const bool known =
      std::any_of(std::begin(kCommands), std::end(kCommands),
                  [&](const Command* command) { return command->name == args.front(); });
  if (known) return {};
  return fail(ErrorCode::bad_input, fmt::format("unknown command '{}'; the commands are {}",
                                                args.front(), command_names()));
}

// CLI11 reports --help and --version as errors too; those go to stdout with exit code 0.
int report_parse(const CLI::App& app, const CLI::ParseError& error, const Streams& streams) {
  const auto chosen = app.get_subcommands();
  const CLI::App& at = chosen.empty() ? app : *chosen.front();
  if (dynamic_cast<const CLI::CallForHelp*>(&error) != nullptr) {
    streams.out << at.help(chosen.empty() ? "" : "autotune");
    return kExitDone;
  }
  if (dynamic_cast<const CLI::CallForVersion*>(&error) != nullptr) {
    streams.out << "autotune " << AUTOTUNE_VERSION << "\n";
    return kExitDone;
  }
  const std::string help =
      chosen.empty() ? "autotune --help" : "autotune " + at.get_name() + " --help";
  streams.err << fmt::format("autotune: {}; see '{}'\n", parse_text(at, error), help);
  return kExitBadInput;
}

void add_command(CLI::App& app, const Command& command, Options& options) {
  CLI::App* sub = app.add_subcommand(command.name, command.summary);
  if (command.hidden) sub->group("");
  sub->footer(fmt::format("Examples:\n{}", command.examples));
  add_options(*sub, command.sets, options);
}

// All that any command writes to, and the cache that no command should write over.
std::vector<Target> targets_of(const Options& options) {
  const auto cache = cache_path(options);
  return {{options.cache.empty() ? "the cache" : "--cache", cache ? cache->string() : ""},
          {"--output", options.bundle},
          {"--output", options.calibration},
          {"--output", options.sweep},
          {"--svg", options.svg},
          {"--yaml", options.yaml, true},
          {"--json", options.json, true}};
}

int run_parsed(const CLI::App& app, const Options& options, const Streams& streams) {
  const std::string name = app.get_subcommands().front()->get_name();
  const auto* command = *std::find_if(std::begin(kCommands), std::end(kCommands),
                                      [&](const Command* each) { return each->name == name; });
  Output output(streams, options.json, options.quiet ? -1 : options.verbose);
  auto writable = check_apart(targets_of(options));
  if (writable) writable = output.check_json();
  if (!writable) return report(streams.err, writable.error());
  const Expected<int> code = command->run(options, output);
  if (code) return *code;
  // No older result may pass for this one's; wrong input leaves everything as it was.
  if (exit_code_of(code.error().code) != kExitBadInput) {
    const auto left = output.json(io::ErrorJson{code.error().message});
    if (!left) report(streams.err, left.error());
  }
  return report(streams.err, code.error());
}

}  // namespace

int exit_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::bad_input:
    case ErrorCode::foreign_file:  // the caller named a file that is not ours
      return kExitBadInput;
    case ErrorCode::nothing_fits:
      return kExitNothingFits;
    case ErrorCode::no_gpu:
    case ErrorCode::no_compiler:
      return kExitNoGpu;
    case ErrorCode::cancelled:
      return kExitInterrupted;
    case ErrorCode::io_failed:
    case ErrorCode::corrupt_file:
    case ErrorCode::busy:
    case ErrorCode::failed:
      break;
  }
  return kExitFailed;
}

int run_cli(const std::vector<std::string>& args, const Streams& streams) {
  Options options;
  CLI::App app(kDescription, "autotune");
  app.get_formatter()->column_width(34);
  app.set_version_flag("--version", AUTOTUNE_VERSION);
  app.require_subcommand(1);
  app.footer(kFooter);
  for (const Command* command : kCommands) add_command(app, *command, options);

  // For whoever installs the program.
  if (args == std::vector<std::string>{"--man-page"}) {
    streams.out << man_page(app, AUTOTUNE_VERSION);
    return written(kExitDone, streams);
  }
  if (args == std::vector<std::string>{"--bash-completion"}) {
    streams.out << bash_completion(app);
    return written(kExitDone, streams);
  }
  if (auto command = check_command(app, args); !command) {
    command.error().message += "; see 'autotune --help'";
    return report(streams.err, command.error());
  }
  // CLI11 takes the arguments from the back.
  std::vector<std::string> reversed(args.rbegin(), args.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    return written(report_parse(app, error, streams), streams);
  }
  return written(run_parsed(app, options, streams), streams);
}

}  // namespace autotune::cli
