#include "search/space.h"

#include <limits>

#include "fake_kernel.h"
#include "test/support/catch.h"

namespace autotune::search {

TEST_CASE("the product is walked in index order, the last parameter fastest") {
  const Space space = fake_space({{"smem", {1, 2, 3}}, {"threads", {32, 64}}, {"order", {0, 1}}});
  const KernelSpace& kernel_space = space.kernels[0];
  REQUIRE(size_of(kernel_space) == 12);
  std::vector<Config> walked;
  for_each_config(fake_kernel(), kernel_space, [&](const Config& c) { walked.push_back(c); });
  REQUIRE(walked.size() == 12);
  for (std::int64_t i = 0; i < 12; ++i) {
    CHECK(config_at(fake_kernel(), kernel_space, i) == walked[static_cast<std::size_t>(i)]);
  }
  CHECK(walked[0] == fake_config({{"smem", 1}, {"threads", 32}, {"order", 0}}));
  CHECK(walked[1] == fake_config({{"smem", 1}, {"threads", 32}, {"order", 1}}));
  CHECK(walked[11] == fake_config({{"smem", 3}, {"threads", 64}, {"order", 1}}));
}

TEST_CASE("an empty range makes an empty product, and a vast one does not overflow") {
  Space space = fake_space({{"smem", {}}});
  CHECK(size_of(space.kernels[0]) == 0);
  int visited = 0;
  for_each_config(fake_kernel(), space.kernels[0], [&](const Config&) { ++visited; });
  CHECK(visited == 0);
  for (ParameterRange& range : space.kernels[0].parameters) range.values.assign(100, 1);
  CHECK(size_of(space.kernels[0]) == std::numeric_limits<std::int64_t>::max());
}

TEST_CASE("a space that is not the family's is bad input that names what is wrong") {
  const auto message = [](const Space& space) {
    const auto valid = validate(space, fake_family());
    REQUIRE_FALSE(valid);
    CHECK(valid.error().code == ErrorCode::bad_input);
    return valid.error().message;
  };
  REQUIRE(validate(fake_space({}), fake_family()));
  Space space = fake_space({});
  space.family = "gemm";
  CHECK(message(space).find("family 'gemm'") != std::string::npos);
  space = fake_space({});
  space.kernels[0].kernel = "other";
  CHECK(message(space).find("no kernel 'other'") != std::string::npos);
  space = fake_space({});
  space.kernels[0].parameters.pop_back();
  CHECK(message(space).find("11 parameters, the space gives 10") != std::string::npos);
  space = fake_space({});
  std::swap(space.kernels[0].parameters[0], space.kernels[0].parameters[1]);
  CHECK(message(space).find("'static_smem' stands where 'smem' belongs") != std::string::npos);
  CHECK(message(fake_space({{"threads", {}}})).find("'threads' has no values") !=
        std::string::npos);
  CHECK(message(fake_space({{"threads", {5000}}})).find("threads=5000 is outside 1..4096") !=
        std::string::npos);
}

}  // namespace autotune::search
