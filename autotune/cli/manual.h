// The manual page and the shell completion, both made from the commands and options as they are
// parsed.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace autotune::cli {

// autotune(1) in roff, for man.
std::string man_page(CLI::App& app, const std::string& version);

// A script for bash: commands, the options of the command that was typed, the words that a first
// argument may be, and files behind options that take one.
std::string bash_completion(CLI::App& app);

}  // namespace autotune::cli
