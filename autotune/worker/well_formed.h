// A look at CBOR bytes before the parser sees them.
#pragma once

#include <string_view>

namespace autotune::worker {

// Whether `bytes` are one CBOR item of the kinds that messages use (no tags, nothing of indefinite
// length), nested at most 8 deep, whose lengths fit into the bytes that are there. The JSON library
// recurses per level and reserves what a length claims, so a message is only given to it after
// this.
bool well_formed(std::string_view bytes);

}  // namespace autotune::worker
