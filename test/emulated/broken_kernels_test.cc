// A kernel with one step left out does not get past the emulator: what shows that its silence on
// the others means something.
#include <string>
#include <vector>

#include "autotune/io/builtin.h"
#include "test/emulated/broken.h"
#include "test/emulated/emulate.h"
#include "test/support/catch.h"
#include "test/support/on_all_cores.h"
#include "test/support/problems.h"

using namespace autotune;

namespace {

// What is found with how many of so many seeds, broken or as it should be, until that is enough.
struct Findings {
  int count = 0;
  std::string first;
};
constexpr int kEnough = 2;
Findings found(const test::Broken& broken, bool as_it_should_be, std::uint64_t seeds) {
  Problem problem = test::gemm(broken.m, broken.n, broken.k, broken.dtype, broken.layout);
  problem.family = broken.family;
  problem.activation = broken.activation;
  problem.alpha = 2;
  const DeviceSpec& device = *io::find_device("nvidia-h200");
  const Config config = parse_config(broken.config, *find_family(broken.family)).value();
  const test::GivenMatrices given = test::draw(problem, 1);
  std::vector<test::Replaced> replaced;
  if (!as_it_should_be) replaced.push_back(broken.replaced);
  const emulator::Program program = test::program_of(config, problem, device, replaced);
  Findings findings;
  for (std::uint64_t seed = 1; seed <= seeds && findings.count < kEnough; ++seed) {
    std::string finding;
    try {
      const auto results =
          test::emulate(program, config, problem, device, given, seed, broken.max_sms);
      finding = test::difference(problem, given, results);
    } catch (const emulator::Fault& fault) {
      finding = fault.what();
    }
    if (finding.empty()) continue;
    ++findings.count;
    if (findings.first.empty()) findings.first = finding;
  }
  return findings;
}

}  // namespace

TEST_CASE("a kernel with a step left out is found out", "[emulated]") {
  std::vector<test::Broken> all;
  for (const auto& some : {test::broken_rings(), test::broken_stores(), test::broken_mma_bulk(),
                           test::broken_others()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  std::vector<Findings> as_it_should_be(all.size());
  std::vector<Findings> with_fault(all.size());
  test::on_all_cores(all.size(), [&](std::size_t i) {
    as_it_should_be[i] = found(all[i], /*as_it_should_be=*/true, 4);
    with_fault[i] = found(all[i], /*as_it_should_be=*/false, 10);
  });
  for (std::size_t i = 0; i < all.size(); ++i) {
    INFO(all[i].what << ": " << with_fault[i].first);
    CHECK(as_it_should_be[i].first.empty());
    CHECK(with_fault[i].count >= kEnough);
    CHECK(with_fault[i].first.find(all[i].finding) != std::string::npos);
  }
}
