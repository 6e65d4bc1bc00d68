// A kernel with one step left out does not get past the emulator: what shows that its silence on
// the others means something.
#include <string>
#include <vector>

#include "autotune/io/builtin.h"
#include "test/emulated/emulate.h"
#include "test/support/catch.h"
#include "test/support/on_all_cores.h"
#include "test/support/problems.h"

using namespace autotune;

namespace {

struct Broken {
  std::string what;
  std::string config;
  DType dtype;
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
  int max_sms;
  test::Replaced replaced;
  std::string finding;  // part of what must be said
  Layout layout = Layout::tn;
};

const std::string kOne =
    "wgmma:block_m=64,block_n=64,block_k=32,stages=3,consumers=1,pingpong=0,raster=0,swizzle=1,";
const std::string kTwo =
    "wgmma:block_m=128,block_n=64,block_k=32,stages=3,consumers=2,pingpong=0,raster=0,swizzle=1,";
const std::string kThroughRing =
    "wgmma:block_m=64,block_n=64,block_k=32,stages=14,consumers=1,pingpong=0,raster=0,swizzle=1,"
    "cluster_m=1,cluster_n=1,split_k=1";
const std::string kTurns =
    "wgmma:block_m=64,block_n=64,block_k=32,stages=3,consumers=2,pingpong=1,raster=0,swizzle=1,"
    "cluster_m=1,cluster_n=1,split_k=1";
const std::string kAlone = "cluster_m=1,cluster_n=1,split_k=1";
const std::string kPair = "cluster_m=1,cluster_n=2,split_k=1";
const std::string kParts = "cluster_m=1,cluster_n=1,split_k=4";
const std::string kGroups = "cluster_m=1,cluster_n=2,split_k=3";
const std::string kFp32 =
    "wgmma_fp32:block_m=64,block_n=64,block_k=32,stages=3,cut_stages=2,chains=1,cutters=3,"
    "raster=0,swizzle=1";
const std::string kMma =
    "mma:block_m=64,block_n=32,block_k=32,stages=3,warps_m=2,warps_n=2,raster=0,swizzle=1,";
const std::string kGemv =
    "gemv:block_m=8,block_n=16,block_k=64,stages=2,warps_n=1,warps_k=4,min_blocks=1,raster=0,"
    "swizzle=1";
const std::string kSimt =
    "simt:block_m=64,block_n=64,block_k=16,stages=3,thread_m=4,thread_n=4,min_blocks=1,raster=0,"
    "swizzle=1";

const std::vector<Broken>& all_broken() {
  using enum DType;
  static const std::vector<Broken> all = {
      {"nobody waits for a stage to arrive",
       kOne + kAlone,
       tf32,
       100,
       68,
       160,
       0,
       {"    barrier_wait(shared_address(&shared.full[at.stage]), at.parity);", ""},
       ""},
      {"a stage is given back while it is multiplied",
       kOne + kAlone,
       tf32,
       100,
       68,
       160,
       0,
       {"    wgmma_wait<1>();  // the k tile before this one is done", ""},
       "a copy writes what is still read asynchronously"},
      {"a stage is given back that was not taken",
       kOne + kAlone,
       tf32,
       100,
       68,
       160,
       0,
       {"if (i > 0 && !given_back) release", "if (!given_back) release"},
       ""},
      {"the producer does not wait for a stage",
       kTwo + kAlone,
       tf32,
       300,
       68,
       320,
       1,
       {"      barrier_wait(shared_address(&shared.empty[at.stage]), at.parity);\n      load_stage",
        "      load_stage"},
       ""},
      {"one warp hands the turn on for all of them",
       kTurns,
       tf32,
       1000,
       68,
       32,
       1,
       {"if (PINGPONG && threadIdx.x % 32 == 0) barrier_arrive(shared_address(&next_turn));",
        "for (int w = 0; PINGPONG && threadIdx.x % 128 == 0 && w < 4; ++w) "
        "barrier_arrive(shared_address(&next_turn));"},
       "waits"},
      {"consumers do not take turns",
       kTurns,
       tf32,
       300,
       68,
       320,
       1,
       {"      barrier_wait(shared_address(&shared.turn[consumer]), turn_parity);", ""},
       ""},
      {"a stage announces too few bytes",
       kOne + kAlone,
       tf32,
       128,
       64,
       160,
       0,
       {"barrier_expect(full, stage_bytes(args));",
        "barrier_expect(full, stage_bytes(args) - 16);"},
       ""},
      {"a buffer is filled while it is stored",
       kOne + kAlone,
       tf32,
       300,
       68,
       160,
       1,
       {"  if (first_lane) tma_store_wait<0>();", ""},
       "written while it is read asynchronously"},
      {"what is stored was not fenced",
       kOne + kAlone,
       tf32,
       100,
       68,
       160,
       0,
       {"last);\n  fence_async_proxy();", "last);"},
       "without a fence"},
      {"lanes do not wait for each other before their buffer is stored",
       kOne + kAlone,
       tf32,
       100,
       68,
       160,
       0,
       {"last);\n  fence_async_proxy();\n  __syncwarp();", "last);\n  fence_async_proxy();"},
       ""},
      {"the last stage fills while C leaves through it",
       kThroughRing,
       tf32,
       200,
       68,
       160,
       1,
       {"      if (threadIdx.x % 32 == 0) tma_store_wait<0>();\n      fence", "      fence"},
       "a copy writes what is still read asynchronously"},
      {"a block ends while its C is read",
       kOne + kAlone,
       tf32,
       100,
       68,
       160,
       0,
       {"  if (threadIdx.x % 32 == 0) tma_store_wait<0>();\n  exchange", "  exchange"},
       "ends while its boxes are still read"},
      {"a block of a cluster ends while others still speak to it",
       kOne + kPair,
       tf32,
       200,
       200,
       160,
       2,
       {"  if constexpr (kCluster > 1) {  // stay until", "  if constexpr (false) {  //"},
       "a block that has ended"},
      {"a block speaks to another one's barriers before they are set up",
       kOne + kPair,
       tf32,
       200,
       200,
       160,
       2,
       {"  if constexpr (kCluster > 1) cluster_wait();", ""},
       "no barrier was set up"},
      {"a descriptor keeps the number of the block",
       "wgmma:block_m=64,block_n=128,block_k=64,stages=3,consumers=1,pingpong=0,raster=0,swizzle=1,"
       "cluster_m=1,cluster_n=2,split_k=1",
       bf16,
       100,
       200,
       160,
       2,
       {"(address & 0x3FFFF) >> 4;\n  }\n  static constexpr int kStepK",
        "u64(address) >> 4;\n  }\n  static constexpr int kStepK"},
       "",
       Layout::tt},
      {"nobody says that sums were read",
       kOne + kParts,
       tf32,
       100,
       68,
       320,
       0,
       {"  exchange.release();", ""},
       "waits for what does not come"},
      {"a block ends before its sums were read",
       kOne + kParts,
       tf32,
       100,
       68,
       320,
       0,
       {"  exchange.wait_until_read();", ""},
       "a block that has ended"},
      {"a warp without rows takes part",
       kOne + kParts,
       tf32,
       100,
       68,
       320,
       0,
       {"  if (!has_rows(args, row, 0)) return;", ""},
       "waits for what does not come"},
      {"sums are announced before all warps have left theirs",
       kTwo + kGroups,
       tf32,
       200,
       136,
       320,
       0,
       {"  block_wait<CONSUMERS * 128>();\n  if (thread == 0) meet_at_mark",
        "  if (thread == 0) meet_at_mark"},
       ""},
      {"a mark is left behind",
       kTwo + kGroups,
       tf32,
       200,
       136,
       320,
       0,
       {">> 16 == groups - 1) *mark = 0;", ">> 16 == groups) *mark = 0;"},
       "a mark"},
      {"parts of B are read unfenced",
       kFp32,
       fp32,
       100,
       68,
       160,
       0,
       {"      fence_async_proxy();  // the matrix instruction reads what was written here", ""},
       "without a fence"},
      {"parts of B are written while they are multiplied",
       kFp32,
       fp32,
       100,
       68,
       320,
       0,
       {"      barrier_wait(shared_address(&shared.cut_empty[to.stage]), to.parity);", ""},
       ""},
      {"cutters do not wait for B",
       kFp32,
       fp32,
       100,
       68,
       160,
       0,
       {"      barrier_wait(shared_address(&shared.full[from.stage]), from.parity);", ""},
       ""},
      {"a stage goes back before all lanes have read it",
       kFp32,
       fp32,
       100,
       68,
       320,
       0,
       {"+ fragment, lost);\n    __syncwarp();", "+ fragment, lost);"},
       ""},
      {"mma: tiles are read before they are there",
       kMma + "split_k=1",
       tf32,
       100,
       68,
       160,
       0,
       {"\n  cp_async_wait<STAGES - 2>();\n  __syncthreads();", "\n  __syncthreads();"},
       "read while a copy writes it"},
      {"mma: one warp reads what another has not copied",
       kMma + "split_k=1",
       tf32,
       100,
       68,
       160,
       0,
       {"\n  cp_async_wait<STAGES - 2>();\n  __syncthreads();", "\n  cp_async_wait<STAGES - 2>();"},
       ""},
      {"mma: parts are added up before they are there",
       kMma + "split_k=3",
       tf32,
       100,
       69,
       161,
       0,
       {"  if (!__syncthreads_or(last)) return false;\n", ""},
       "no barrier is between"},
      {"gemv: sums are read before they are there",
       kGemv,
       tf32,
       7,
       68,
       320,
       0,
       {"  __syncthreads();\n", ""},
       ""},
      {"simt: tiles are read before they are there",
       kSimt,
       fp32,
       100,
       68,
       160,
       0,
       {"  cp_async_wait<STAGES - 2>();\n  __syncthreads();\n", "  __syncthreads();\n"},
       "read while a copy writes it"},
      {"rows behind the last one are written",
       kOne + kAlone,
       tf32,
       100,
       67,
       160,
       0,
       {"!exists(row + r, rows_of_c(args)) || !exists(col + c", "!exists(col + c"},
       "that nobody gave"},
      {"A is loaded before the launch ahead has written it",
       kOne + kAlone,
       tf32,
       100,
       68,
       160,
       0,
       {"    wait_for_launch_ahead();\n    open_ring", "    open_ring"},
       "the launch ahead may still be at work"},
      {"gemv: A is read before the launch ahead has written it",
       kGemv,
       tf32,
       7,
       68,
       320,
       0,
       {"  wait_for_launch_ahead();  // which", "  // which"},
       "the launch ahead may still be at work"},
      {"registers are not fenced",
       kOne + kAlone,
       tf32,
       100,
       68,
       160,
       0,
       {"    wgmma_fence();", ""},
       "without a fence before it"},
      {"sums are stored before they are there",
       kOne + kAlone,
       tf32,
       100,
       68,
       160,
       0,
       {"  wgmma_wait<0>();\n  if constexpr (!STORES_IN_RING)", "  if constexpr (!STORES_IN_RING)"},
       ""},
      {"C is stored through a stage that another consumer reads",
       "wgmma:block_m=128,block_n=128,block_k=32,stages=7,consumers=2,pingpong=0," + kAlone,
       tf32,
       300,
       68,
       160,
       1,
       {"    block_wait<CONSUMERS * 128>();  // until no warp's product reads that stage\n", ""},
       ""},
      {"a stage through which C still leaves is given back",
       "wgmma:block_m=128,block_n=128,block_k=32,stages=7,consumers=2,pingpong=0," + kAlone,
       tf32,
       300,
       68,
       160,
       1,
       {"      fence_async_proxy();\n      block_wait<CONSUMERS * 128>();\n",
        "      fence_async_proxy();\n"},
       ""},
      {"two consumers store through the same part of a stage",
       "wgmma:block_m=128,block_n=128,block_k=32,stages=7,consumers=2,pingpong=0," + kAlone,
       tf32,
       300,
       68,
       160,
       1,
       {"[consumer * 4 + warp];\n#endif\n    store_tile", "[warp];\n#endif\n    store_tile"},
       ""},
      {"a cluster meets before its barriers are set up",
       kOne + kPair,
       tf32,
       200,
       200,
       160,
       2,
       {"    set_up_barriers(shared);\n  }\n  if constexpr (kMeets) {  // others speak to this "
        "block's "
        "barriers\n    __syncwarp();\n    cluster_arrive_relaxed();\n  }",
        "  }\n  __syncwarp();\n  cluster_arrive_relaxed();\n"
        "  if (threadIdx.x == 0) set_up_barriers(shared);"},
       "no barrier was set up"},
      {"barriers are not fenced",
       kOne + kPair,
       tf32,
       200,
       200,
       160,
       2,
       {"  barrier_init_fence();\n}\n\nstatic_assert", "}\n\nstatic_assert"},
       "whose setting up was not fenced"},
      {"nobody tries again",
       kOne + kAlone,
       tf32,
       100,
       68,
       160,
       0,
       {"      \"@!done bra again;\\n\"", ""},
       ""},
      {"fp32: parts of B change places",
       kFp32,
       fp32,
       100,
       68,
       160,
       0,
       {"kPartOfB[] = {0, 2, 1, 0, 1, 0}", "kPartOfB[] = {0, 2, 1, 1, 0, 0}"},
       "elements are wrong"},
      {"fp32: nobody sees what parts do not hold",
       kFp32,
       fp32,
       100,
       68,
       160,
       0,
       {"{ return (lost & 0xffff) != 0; }", "{ return false; }"},
       "elements are wrong"},
      {"alpha is forgotten",
       kSimt,
       fp32,
       100,
       67,
       160,
       0,
       {"return args.alpha * first;", "return first;"},
       "elements are wrong"},
  };
  return all;
}

// What is found with how many of so many seeds, broken or as it should be, until that is enough.
struct Findings {
  int count = 0;
  std::string first;
};
constexpr int kEnough = 2;
Findings found(const Broken& broken, bool as_it_should_be, std::uint64_t seeds) {
  Problem problem = test::gemm(broken.m, broken.n, broken.k, broken.dtype, broken.layout);
  problem.alpha = 2;
  const DeviceSpec& device = *io::find_device("nvidia-h200");
  const Config config = parse_config(broken.config, *find_family("gemm")).value();
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
  const std::vector<Broken>& all = all_broken();
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
