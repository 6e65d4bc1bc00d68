#include "autotune/cli/manual.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>
#include <vector>

#include "kernels/kernel.h"

namespace autotune::cli {
namespace {

std::vector<CLI::App*> commands_of(CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
}

std::vector<CLI::Option*> options_of(CLI::App& command) {
  return command.get_options(
      [](const CLI::Option* option) { return !option->get_group().empty(); });
}

std::vector<std::string> flags_of(const CLI::Option& option) {
  std::vector<std::string> flags;
  for (const std::string& name : option.get_snames()) flags.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) flags.push_back("--" + name);
  return flags;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

// Text that roff takes as it is: no escapes, no requests at the start of a line.
std::string roff(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const bool starts_line = result.empty() || result.back() == '\n';
    if (starts_line && (c == '.' || c == '\'')) result += "\\&";
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
  }
  return result;
}

std::string option_paragraph(const CLI::Option& option) {
  std::string head;
  for (const std::string& flag : flags_of(option)) {
    head += fmt::format("{}\\fB{}\\fR", head.empty() ? "" : ", ", roff(flag));
  }
  if (head.empty()) head = fmt::format("\\fI{}\\fR", roff(option.get_name()));
  if (takes_value(option) && !option.get_positional()) {
    head += fmt::format(" \\fI{}\\fR", roff(option.get_type_name()));
  }
  const std::string text = one_line(option.get_description());
  return fmt::format(".TP\n{}\n{}\n", head, roff(text));
}

// The words of "a, b or c", the help of a positional that is one of them.
std::vector<std::string> words_of(std::string text) {
  text = one_line(text);
  std::vector<std::string> words;
  std::string word;
  for (const char c : text + ",") {
    if (c != ',' && c != ' ') {
      word += c;
      continue;
    }
    if (!word.empty() && word != "or") words.push_back(word);
    word.clear();
  }
  return words;
}

// What may stand behind the command itself.
std::vector<std::string> first_arguments(CLI::App& command) {
  for (const CLI::Option* option : options_of(command)) {
    if (option->get_name() == "ACTION") return words_of(option->get_description());
    if (option->get_name() != "FAMILY") continue;
    std::vector<std::string> names;
    for (const Family* family : families()) names.emplace_back(family->name);
    return names;
  }
  return {};
}

}  // namespace

std::string man_page(CLI::App& app, const std::string& version) {
  std::string page = fmt::format(
      ".TH AUTOTUNE 1 \"\" \"autotune {}\"\n.SH NAME\nautotune \\- find the fastest configuration "
      "of a GPU kernel\n.SH SYNOPSIS\n\\fBautotune\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR]...\n"
      ".SH DESCRIPTION\n{}\n",
      version, roff(one_line(app.get_description())));
  for (CLI::App* command : commands_of(app)) {
    page += fmt::format(".SH \"AUTOTUNE {}\"\n{}.\n", roff(command->get_name()),
                        roff(one_line(command->get_description())));
    for (const CLI::Option* option : options_of(*command)) page += option_paragraph(*option);
    page += fmt::format(".PP\n.nf\n{}\n.fi\n", roff(command->get_footer()));
  }
  return page + fmt::format(".SH NOTES\n.nf\n{}\n.fi\n", roff(app.get_footer()));
}

std::string bash_completion(CLI::App& app) {
  std::vector<std::string> names;
  std::string cases;
  for (CLI::App* command : commands_of(app)) {
    names.push_back(command->get_name());
    std::vector<std::string> all;
    std::vector<std::string> with_file;
    std::vector<std::string> with_folder;
    std::vector<std::string> with_value;
    for (const CLI::Option* option : options_of(*command)) {
      for (const std::string& flag : flags_of(*option)) {
        all.push_back(flag);
        if (!takes_value(*option)) continue;
        const std::string value = option->get_type_name();
        const bool file = value.find("FILE") != std::string::npos;
        (file ? with_file : value == "FOLDER" ? with_folder : with_value).push_back(flag);
      }
    }
    cases += fmt::format(
        "    {})\n      options=\"{}\"\n      files=\" {} \"\n      folders=\" {} \"\n"
        "      values=\" {} \"\n      words=\"{}\"\n      ;;\n",
        command->get_name(), fmt::join(all, " "), fmt::join(with_file, " "),
        fmt::join(with_folder, " "), fmt::join(with_value, " "),
        fmt::join(first_arguments(*command), " "));
  }
  return fmt::format(R"(# bash completion of autotune, made from its options.
_autotune() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}
  local options files folders values words
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{} --help --version" -- "$current"))
    return
  fi
  case ${{COMP_WORDS[1]}} in
{}    *) return ;;
  esac
  if [[ $files == *" $before "* ]]; then
    COMPREPLY=($(compgen -f -- "$current"))
  elif [[ $folders == *" $before "* ]]; then
    COMPREPLY=($(compgen -d -- "$current"))
  elif [[ $values == *" $before "* ]]; then
    return
  elif [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
  elif [ "$COMP_CWORD" -eq 2 ] && [ -n "$words" ]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  else
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}}
complete -o filenames -F _autotune autotune
)",
                     fmt::join(names, " "), cases);
}

}  // namespace autotune::cli
