// A config on matrices that a test gives, run on the CPU from the PTX that the compiler makes of
// it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "test/emulator/program.h"
#include "test/support/given_matrices.h"

namespace autotune::test {

// `replaced`: text of the source that is to become another one first.
struct Replaced {
  std::string from;
  std::string to;
};
// Throws an emulator::Fault where it does not compile or has no such text.
emulator::Program program_of(const Config& config, const Problem& problem, const DeviceSpec& device,
                             const std::vector<Replaced>& replaced = {});

// m x n results, row by row; what was not written stays NaN. With an even seed the launch may begin
// before the one ahead, which writes A and shares the workspace, has ended. Throws an
// emulator::Fault, also where bytes between the lines of C were written or a mark of the workspace
// was left behind.
std::vector<float> emulate(const emulator::Program& program, const Config& config,
                           const Problem& problem, const DeviceSpec& device,
                           const GivenMatrices& given, std::uint64_t seed, int max_sms = 0);

// Numbers for every matrix of the problem: whole ones, small fractions as gates, and in fp32 such
// as take all of its bits, with a row of tiny ones and an infinite one where nothing is gated. The
// last column's gates are NaN.
GivenMatrices draw(const Problem& problem, std::uint64_t seed);

// What differs from the exact results, in words; empty where nothing does. Sums of whole numbers
// are exact, so are results but for their rounding; a small error is permitted behind an
// activation, and in fp32.
std::string difference(const Problem& problem, const GivenMatrices& given,
                       const std::vector<float>& results);

}  // namespace autotune::test
