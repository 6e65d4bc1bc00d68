// A gated kernel's host twin beside the plain one's: what there is twice, and what stays.

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>

#include "kernels/gemm/args.h"
#include "kernels/kernel.h"
#include "test/support/catch.h"

namespace autotune {
namespace {

Problem product(const char* family, DType dtype = DType::bf16, Layout layout = Layout::tn) {
  Problem problem;
  problem.family = family;
  problem.m = 1000;
  problem.n = 2000;
  problem.k = 512;
  problem.dtype = dtype;
  problem.out_dtype = default_out_dtype(dtype);
  problem.layout = layout;
  const auto whole = checked(problem);
  REQUIRE(whole);
  return *whole;
}

Config config_of(const char* family, std::string_view text) {
  const auto config = parse_config(text, *find_family(family));
  REQUIRE(config);
  return *config;
}

DeviceSpec hopper() {
  DeviceSpec device;
  device.sm_count = 132;
  device.limits.features = static_cast<std::uint32_t>(Feature::wgmma);
  return device;
}

std::string definition(const Config& config, const Problem& problem, std::string_view name) {
  for (const auto& [each, value] :
       config.kernel->definitions(config, traits_of(problem), hopper())) {
    if (each == name) return value;
  }
  return "none";
}

Resources needs(const Config& config, const Problem& problem) {
  return config.kernel->resources(config, problem, hopper(), 0);
}

// The name of the first broken constraint; empty where all hold.
std::string broken(const Config& config, const Problem& problem) {
  for (const Constraint& constraint : config.kernel->constraints()) {
    if (!constraint.holds(config.values, traits_of(problem))) return std::string(constraint.name);
  }
  return "";
}

}  // namespace

TEST_CASE(
    "the gated family has the kernels that multiply with two matrices, and names the others") {
  const Family* geglu = find_family("geglu");
  REQUIRE(geglu != nullptr);
  for (const char* name : {"wgmma", "wgmma_fp32", "mma", "simt"}) {
    CHECK(find_kernel(*geglu, name) != nullptr);
  }
  const auto other = parse_config("gemv:block_m=8", *geglu);
  REQUIRE_FALSE(other);
  CHECK(other.error().message.find("it has wgmma, wgmma_fp32, mma, simt") != std::string::npos);
}

TEST_CASE("the gate is compiled in, with the activation's number") {
  const Config config = config_of("geglu", "mma");
  Problem problem = product("geglu");
  CHECK(definition(config, problem, "GATED") == "1");
  CHECK(definition(config, problem, "ACTIVATION") == "0");
  problem.activation = Activation::relu;
  CHECK(definition(config, problem, "ACTIVATION") == "3");
  CHECK(definition(config, product("gemm"), "GATED") == "0");
  const DeviceSpec device = hopper();
  CHECK(source_hash(config, traits_of(problem), device) !=
        source_hash(config, traits_of(product("geglu")), device));
}

TEST_CASE("a gated tile takes the operands, accumulators and work of one with twice the columns") {
  struct Pair {
    const char* gated;
    const char* plain;
    DType dtype;
  };
  const Pair pairs[] = {
      {"wgmma:block_m=128,block_n=96,block_k=64,stages=4", "wgmma:block_n=192", DType::bf16},
      {"wgmma_fp32:block_m=128,block_n=56,stages=4,chains=2",
       "wgmma_fp32:block_m=128,block_n=112,stages=4,chains=2", DType::fp32},
      {"wgmma_fp32:block_m=64,block_n=24,chains=1", "wgmma_fp32:block_m=64,block_n=48,chains=1",
       DType::fp32},
      {"mma:block_m=128,block_n=64,block_k=64,warps_m=2,warps_n=2",
       "mma:block_m=128,block_n=128,block_k=64,warps_m=2,warps_n=2", DType::bf16},
      {"mma:block_m=64,block_n=32,block_k=32,warps_m=2,warps_n=2",
       "mma:block_m=64,block_n=64,block_k=32,warps_m=2,warps_n=2", DType::fp32},
  };
  for (const Pair& pair : pairs) {
    INFO(pair.gated);
    const Config gated = config_of("geglu", pair.gated);
    const Config plain = config_of("gemm", pair.plain);
    const Problem of_gated = product("geglu", pair.dtype);
    const Problem of_plain = product("gemm", pair.dtype);
    const Resources a = needs(gated, of_gated);
    const Resources b = needs(plain, of_plain);
    CHECK(a.threads == b.threads);
    CHECK(a.register_demand == b.register_demand);
    CHECK(a.registers == b.registers);
    CHECK(a.min_registers == b.min_registers);
    CHECK(a.wgmma_columns == b.wgmma_columns);
    const Work x = gated.kernel->work(gated, of_gated, hopper());
    const Work y = plain.kernel->work(plain, of_plain, hopper());
    CHECK(x.flops_per_k_tile == y.flops_per_k_tile);
    CHECK(x.load_bytes_per_k_tile == y.load_bytes_per_k_tile);
    CHECK(x.smem_bytes_per_k_tile == y.smem_bytes_per_k_tile);
    CHECK(x.load_instructions_per_k_tile == y.load_instructions_per_k_tile);
    CHECK(x.block_n * 2 == y.block_n);
    CHECK(x.store_bytes_per_tile * 2 == y.store_bytes_per_tile);
    CHECK(x.b_bytes == 2 * y.b_bytes);
    CHECK(x.c_bytes == y.c_bytes);
    CHECK(broken(gated, of_gated).empty());
  }
}

TEST_CASE("simt keeps a tile of A and two of B, and nothing between them, in every layout") {
  const Config config = config_of("geglu", "simt:block_m=64,block_n=32,block_k=16,stages=3");
  for (const Layout layout : {Layout::tn, Layout::tt, Layout::nn, Layout::nt}) {
    const Problem problem = product("geglu", DType::fp32, layout);
    CHECK(needs(config, problem).smem_bytes == 3 * (64 + 2 * 32) * 16 * 4);
    CHECK(definition(config, problem, "SMEM_B_OFFSET") == std::to_string(64 * 16 * 4));
    CHECK(definition(config, problem, "SMEM_STAGE_BYTES") == std::to_string((64 + 64) * 16 * 4));
  }
}

TEST_CASE("the explained terms add up to the shared memory of a gated block") {
  const std::pair<const char*, DType> cases[] = {{"wgmma:block_m=128,block_n=64", DType::bf16},
                                                 {"wgmma_fp32:block_n=56", DType::fp32},
                                                 {"mma", DType::bf16},
                                                 {"simt", DType::fp32}};
  for (const auto& [text, dtype] : cases) {
    const Config config = config_of("geglu", text);
    const Problem problem = product("geglu", dtype);
    const auto terms = config.kernel->smem_terms(config, traits_of(problem));
    CHECK(terms.back().value == needs(config, problem).smem_bytes);
  }
}

TEST_CASE("an instruction has 256 columns at most, of both weights together") {
  const Problem problem = product("geglu");
  CHECK(needs(config_of("geglu", "wgmma:block_n=128"), problem).wgmma_columns == 256);
  CHECK(needs(config_of("geglu", "wgmma:block_n=136"), problem).wgmma_columns == 272);
  CHECK(broken(config_of("geglu", "wgmma:block_m=256,block_n=128,consumers=1"), problem) ==
        "accumulators");
  const Problem fp32 = product("geglu", DType::fp32);
  CHECK(needs(config_of("geglu", "wgmma_fp32:block_n=128,chains=1"), fp32).wgmma_columns == 256);
  CHECK(needs(config_of("geglu", "wgmma_fp32:block_n=136,chains=1"), fp32).wgmma_columns == 272);
}

TEST_CASE("where B is contiguous along n, a slab of 128 bytes is of one matrix of weights") {
  for (const Layout layout : {Layout::tt, Layout::nt}) {
    const Problem problem = product("geglu", DType::bf16, layout);
    CHECK(broken(config_of("geglu", "wgmma:block_n=64"), problem).empty());
    CHECK(broken(config_of("geglu", "wgmma:block_n=128"), problem).empty());
    CHECK(broken(config_of("geglu", "wgmma:block_n=96"), problem) == "whole_slabs");
    CHECK(broken(config_of("gemm", "wgmma:block_n=96"), product("gemm", DType::bf16, layout))
              .empty());
  }
  CHECK(broken(config_of("geglu", "wgmma:block_n=96"), product("geglu")).empty());
  const Config fp32 = config_of("geglu", "wgmma_fp32:block_n=48,chains=1");
  CHECK(broken(fp32, product("geglu", DType::fp32, Layout::tt)) == "whole_slabs");
  CHECK(broken(fp32, product("geglu", DType::fp32, Layout::tn)).empty());
}

TEST_CASE("gated, k is not split: parts of a gate are not gated one by one") {
  for (const char* text : {"wgmma:block_n=64,split_k=2", "mma:block_n=64,split_k=2"}) {
    const Config split = config_of("geglu", text);
    CHECK(broken(split, product("geglu")) == "whole_gates");
    CHECK(broken(split, product("gemm")).empty());
  }
}

TEST_CASE("of a single column, both weights are served as contiguous along k") {
  Problem column = product("geglu", DType::bf16, Layout::tt);
  column.n = column.ldb = 1;
  const Config config = config_of("geglu", "wgmma:block_n=8");
  CHECK(broken(config, column).empty());
  const LaunchPlan plan = config.kernel->launch_plan(config, column, hopper(),
                                                     {1 << 20, 2 << 20, 3 << 20, 0, 4 << 20}, 0);
  int weights = 0;
  for (const TensorMap& map : plan.maps) {
    if (map.address != 2 << 20 && map.address != 4 << 20) continue;
    CHECK((map.inner == 512 && map.outer == 1 && map.pitch_bytes == 1024));
    ++weights;
  }
  CHECK(weights == 2);
  const Config mma = config_of("geglu", "mma");
  CHECK(definition(mma, column, "B_K_MAJOR") == "1");
  const LaunchPlan of_mma = mma.kernel->launch_plan(mma, column, hopper(), {}, 0);
  GemmArgs args;
  std::memcpy(&args, of_mma.params.data(), sizeof(args));
  CHECK(args.ldb == 512);
}

TEST_CASE("the second weights reach the kernel: as a pointer, and for wgmma as a tensor map") {
  DevicePointers pointers{1 << 20, 2 << 20, 3 << 20, 0, 4 << 20};
  const Problem problem = product("geglu");
  const Config mma = config_of("geglu", "mma");
  const LaunchPlan plain = mma.kernel->launch_plan(mma, problem, hopper(), pointers, 0);
  GemmArgs args;
  REQUIRE(plain.params_size == sizeof(args));
  std::memcpy(&args, plain.params.data(), sizeof(args));
  CHECK(reinterpret_cast<std::uintptr_t>(args.up) == pointers.up);

  const Config config = config_of("geglu", "wgmma:block_m=128,block_n=96,cluster_m=2");
  const LaunchPlan plan = config.kernel->launch_plan(config, problem, hopper(), pointers, 0);
  REQUIRE(plan.map_count == 8);  // three of them for last tiles: 80 columns of both weights
  const auto at = [&](std::uint64_t address) {
    return std::find_if(plan.maps.begin(), plan.maps.end(),
                        [&](const TensorMap& map) { return map.address == address; });
  };
  const TensorMap& gate = *at(pointers.b);
  const TensorMap& up = *at(pointers.up);
  CHECK((gate.box_outer == 96 && up.box_outer == 96));  // two blocks load them by turns
  CHECK((gate.outer == 2000 && up.outer == 2000 && up.pitch_bytes == gate.pitch_bytes));
  const TensorMap& last_gate = plan.maps[6];
  const TensorMap& last_up = plan.maps[7];
  CHECK((last_gate.address == pointers.b && last_gate.box_outer == 80));
  CHECK((last_up.address == pointers.up && last_up.box_outer == 80));
  CHECK(up.offset + 128 == last_up.offset);
  CHECK(last_up.offset + 128 == plan.params_size);
  CHECK(at(pointers.c)->box_inner == 64);  // 96 columns in two stores
  CHECK(std::next(at(pointers.c))->box_inner == 32);
  // Other maps and the arguments lie before it.
  const LaunchPlan ungated =
      config.kernel->launch_plan(config, product("gemm"), hopper(), pointers, 0);
  CHECK(ungated.map_count == 6);  // two of them for A's and B's last tiles
  CHECK(ungated.params_size == up.offset);
}

}  // namespace autotune
