#include "search/space.h"

#include <limits>

#include "fake_kernel.h"
#include "search/codes.h"
#include "test/support/catch.h"

namespace autotune::search {

TEST_CASE("the product is numbered with the last parameter fastest") {
  const Space space = fake_space({{"smem", {1, 2, 3}}, {"threads", {32, 64}}, {"order", {0, 1}}});
  const KernelSpace& kernel_space = space.kernels[0];
  REQUIRE(size_of(kernel_space) == 12);
  const auto config = [&](std::int64_t i) { return config_at(fake_kernel(), kernel_space, i); };
  CHECK(config(0) == fake_config({{"smem", 1}, {"threads", 32}, {"order", 0}}));
  CHECK(config(1) == fake_config({{"smem", 1}, {"threads", 32}, {"order", 1}}));
  CHECK(config(11) == fake_config({{"smem", 3}, {"threads", 64}, {"order", 1}}));
}

TEST_CASE("sound codes are visited in the order of the space, broken ones are counted") {
  const Space space =
      fake_space({{"smem", {1, 2, 3}}, {"threads", {32, 33, 64}}, {"order", {1, 0}}});
  const KernelSpace& kernel_space = space.kernels[0];
  std::vector<Config> codes;
  const auto broken = for_each_sound_code(kernel_space, fake_config({}), traits_of(fake_problem()),
                                          [&](const Config& code) { codes.push_back(code); });
  CHECK(broken == std::vector<std::int64_t>{3});
  REQUIRE(codes.size() == 6);
  CHECK(codes[0] == fake_config({{"smem", 1}, {"threads", 32}, {"order", 0}}));
  CHECK(codes[1] == fake_config({{"smem", 1}, {"threads", 64}, {"order", 0}}));
  CHECK(codes[5] == fake_config({{"smem", 3}, {"threads", 64}, {"order", 0}}));

  const TileOrders orders(fake_kernel(), kernel_space);
  REQUIRE(orders.count() == 2);
  CHECK(orders.at(codes[5], 0) == codes[5]);
  CHECK(orders.at(codes[5], 1) == fake_config({{"smem", 3}, {"threads", 64}, {"order", 1}}));
  CHECK(orders[1] == TileOrder{true, 1});
}

TEST_CASE("an empty range makes an empty product, and a vast one does not overflow") {
  Space space = fake_space({{"smem", {}}});
  CHECK(size_of(space.kernels[0]) == 0);
  int visited = 0;
  for_each_sound_code(space.kernels[0], fake_config({}), traits_of(fake_problem()),
                      [&](const Config&) { ++visited; });
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
