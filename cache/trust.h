// Whether what a file holds may run on the GPU with this user's rights.
#pragma once

#include <filesystem>
#include <string>

namespace autotune::cache {

// Empty when nobody else (root aside) could have written `file` or put it where it is; else the
// reason: the file or its folder belongs to another user or can be written by group or others, or
// a symbolic link of another user leads to it. `file` is absolute and exists.
std::string reason_to_distrust(const std::filesystem::path& file);

}  // namespace autotune::cache
