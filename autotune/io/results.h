// Reading back what `tune` and `bench` wrote with --json.
#pragma once

#include <string>
#include <string_view>

#include "autotune/io/load.h"

namespace autotune::io {

// The measured rows; those without a time are left out. bad_input for what is no such document, for
// times of a part of the GPU (--max-sms), and for a row that is an answer of `best` taken from
// elsewhere, or that no problem or config of ours can be.
Expected<TunedFile> parse_results(std::string_view text, const std::string& origin);

}  // namespace autotune::io
