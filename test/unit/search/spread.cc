#include "search/spread.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "real_plans.h"
#include "test/support/catch.h"

namespace autotune::search {
namespace {

const Plan& square() {
  static const Plan plan = plan_on("nvidia-h200", gemm(1024, 1024, 1024));
  return plan;
}

std::set<std::string> codes_of(const Plan& plan, const std::vector<std::size_t>& drawn) {
  std::set<std::string> codes;
  for (const std::size_t i : drawn) codes.insert(to_string(code_of(plan.survivors[i].config)));
  return codes;
}

}  // namespace

TEST_CASE("a spread draw holds the default config and no config twice") {
  const auto drawn = draw_spread(square(), 500, 1);
  REQUIRE(drawn.size() == 500);
  CHECK(drawn.front() == 0);
  CHECK(std::set(drawn.begin(), drawn.end()).size() == 500);
  CHECK(draw_spread(square(), 500, 1) == drawn);
  CHECK(draw_spread(square(), 500, 2) != drawn);
  const auto first = draw_spread(square(), 100, 1);
  CHECK(std::equal(first.begin(), first.end(), drawn.begin()));
}

TEST_CASE("a spread draw takes as many of each kernel and tile shape, in all orders of tiles") {
  const auto drawn = draw_spread(square(), 600, 1);
  std::map<std::string_view, int> kernels;
  std::set<std::tuple<const HostTwin*, int, int>> shapes;
  std::set<std::pair<int, int>> orders;
  std::unordered_map<Config, int, ConfigHash> codes;
  for (const std::size_t i : drawn) {
    const Config& config = square().survivors[i].config;
    ++kernels[config.kernel->name()];
    ++codes[code_of(config)];
    shapes.emplace(config.kernel, value_of(config, "block_m"), value_of(config, "block_n"));
    orders.emplace(value_of(config, "raster"), value_of(config, "swizzle"));
  }
  REQUIRE(kernels.size() == 2);
  for (const auto& [name, count] : kernels) CHECK(std::abs(count - 300) <= 1);
  for (const auto& [code, count] : codes) CHECK(count <= 2);
  std::set<std::tuple<const HostTwin*, int, int>> all;
  for (const Candidate& each : square().survivors) {
    all.emplace(each.config.kernel, value_of(each.config, "block_m"),
                value_of(each.config, "block_n"));
  }
  CHECK(shapes == all);
  CHECK(orders.size() >= 6);
}

TEST_CASE("a spread draw of everything takes two configs of each code at most") {
  std::unordered_map<Config, std::size_t, ConfigHash> codes;
  for (const Candidate& each : square().survivors) ++codes[code_of(each.config)];
  std::size_t most = 0;
  for (const auto& [code, count] : codes) most += std::min<std::size_t>(count, 2);
  const auto drawn = draw_spread(square(), square().survivors.size(), 1);
  CHECK(drawn.size() >= most);
  CHECK(drawn.size() <= most + 1);  // the default config may be a third
}

TEST_CASE("problems of one kind share the drawn codes") {
  const Plan other = plan_on("nvidia-h200", gemm(4096, 4096, 4096));
  const auto here = codes_of(square(), draw_spread(square(), 600, 1));
  const auto there = codes_of(other, draw_spread(other, 600, 1));
  std::size_t shared = 0;
  for (const std::string& code : here) shared += there.count(code);
  CHECK(shared > here.size() * 8 / 10);
}

}  // namespace autotune::search
