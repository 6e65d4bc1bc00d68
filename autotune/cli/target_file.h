// A text file that a command writes, and the option that names it, for what is said where it fails.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "autotune/types.h"

namespace autotune::cli {

// Whether write_over() could write the file, to be known before hours of work: bad_input where not,
// and where what it holds does not begin, spaces apart, as what is to be written will: that is
// another kind of file, which a slip of the name would destroy. Leaves the file as it is: a run
// that fails later must not have emptied it.
Expected<void> check_writable(std::string_view option, const std::string& file,
                              std::string_view beginning = "");

// The same for replace(), which needs room for a second file beside the first; whatever that holds.
Expected<void> check_replaceable(std::string_view option, const std::string& file);

// Whether two paths, there yet or not, lead to one file. Pipes and devices are never the same.
bool same_file(const std::string& a, const std::string& b);

// A place that a command writes to, and the option that names it.
struct Target {
  std::string_view option;
  std::string file;  // empty: not given; "-": stdout
  bool may_be_stdout = false;
};

// Whether each has a file of its own, however they are spelled: bad_input where not, for what is
// written last would be all that is left. Pipes and devices may be shared. bad_input, too, where
// one is to be stdout that never is.
Expected<void> check_apart(const std::vector<Target>& targets);

// Writes over what is there. io_failed where that cannot be done.
Expected<void> write_over(std::string_view option, const std::string& file, std::string_view text);

// The same, so that whoever reads the file finds all of the old text or of the new; pipes and
// devices are written as they are.
Expected<void> replace(std::string_view option, const std::string& file, std::string_view text);

}  // namespace autotune::cli
