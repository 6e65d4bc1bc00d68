// Writes what configs/ holds as the C++ of builtin_tables.cc.
#pragma once

#include <string>

#include "autotune/io/configs_folder.h"

namespace autotune::io {

std::string tables_source(const Configs& configs);

}  // namespace autotune::io
