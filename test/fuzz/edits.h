// Inputs of a strict binary format, which random bytes would hardly ever reach the inside of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace autotune::fuzz {

// `data` as a list of edits of `sound`: three bytes of place, one of what is done there, one of
// what with. The end of `sound` is within reach, what lies behind it is not.
inline std::string edited(std::string sound, std::string_view data) {
  for (; data.size() >= 5 && !sound.empty(); data.remove_prefix(5)) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(data[i]); };
    const std::size_t place = (byte(0) | byte(1) << 8 | byte(2) << 16) % sound.size();
    switch (byte(3) % 4) {
      case 0:
        sound[place] = data[4];
        break;
      case 1:
        sound[place] = static_cast<char>(byte(4) ^ static_cast<unsigned char>(sound[place]));
        break;
      case 2:
        sound.insert(place, 1, data[4]);
        break;
      default:
        sound.erase(place, byte(4));
        break;
    }
  }
  return sound;
}

// Fails like a crash: for what holds whatever the input was.
inline void require(bool holds) {
  if (!holds) __builtin_trap();
}

}  // namespace autotune::fuzz
