// What instructions do, one by one, in small kernels written in PTX.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "test/emulator/emulator.h"
#include "test/support/catch.h"

using namespace autotune;

namespace {

// Runs `body` in one block of `threads`, which finds the address of `out` in %rd1, and returns
// what it left there.
std::vector<std::uint32_t> run(const std::string& body, std::size_t words, unsigned threads = 32,
                               std::uint64_t seed = 1) {
  const std::string text = R"(
.version 9.0
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 smem[];
.visible .entry kernel(
	.param .u64 kernel_param_0
)
{
	.reg .pred %p<9>;
	.reg .b16 %rs<9>;
	.reg .b32 %r<99>;
	.reg .f32 %f<99>;
	.reg .b64 %rd<99>;
	ld.param.u64 %rd1, [kernel_param_0];
	mov.u32 %r1, %tid.x;
)" + body + "\n\tret;\n}\n";
  std::vector<std::uint32_t> out(words, 0);
  LaunchPlan plan;
  plan.block = {threads, 1, 1};
  plan.smem_bytes = 4096;
  plan.params_size = 8;
  const auto address = reinterpret_cast<std::uint64_t>(out.data());
  std::memcpy(plan.params.data(), &address, sizeof(address));
  emulator::GlobalMemory memory;
  memory.add(address, words * 4, {.written = true});
  emulator::run(emulator::parse_ptx(text), plan, memory, seed);
  return out;
}

// The one word that `body` leaves in %r9 (of thread 0).
std::uint32_t word(const std::string& body) {
  return run(body + "\n\tsetp.ne.s32 %p8, %r1, 0;\n\t@!%p8 st.global.u32 [%rd1], %r9;", 1)[0];
}

std::string fault(const std::string& body, unsigned threads = 32, std::size_t words = 1) {
  try {
    run(body, words, threads);
  } catch (const emulator::Fault& found) {
    return found.what();
  }
  return {};
}

bool says(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("whole numbers keep their width and sign", "[emulated]") {
  CHECK(word("add.s32 %r9, 2147483647, 1;") == 0x80000000);
  CHECK(word("shr.s32 %r9, -8, 1;") == 0xfffffffc);
  CHECK(word("shr.u32 %r9, -8, 1;") == 0x7ffffffc);
  CHECK(word("shl.b32 %r9, 1, 32;") == 0);
  CHECK(word("shr.s32 %r9, -8, 99;") == 0xffffffff);
  CHECK(word("min.s32 %r9, -1, 1;") == 0xffffffff);
  CHECK(word("min.u32 %r9, -1, 1;") == 1);
  CHECK(word("mul.hi.u64 %rd2, -1, 16;\n cvt.u32.u64 %r9, %rd2;") == 15);
  CHECK(word("mul.wide.s32 %rd2, -3, 5;\n shr.u64 %rd3, %rd2, 32;\n cvt.u32.u64 %r9, %rd3;") ==
        0xffffffff);
  CHECK(word("mad.lo.s32 %r9, 7, 6, -2;") == 40);
  CHECK(word("cvt.u16.u32 %rs1, 65535;\n cvt.s32.s16 %r9, %rs1;") == 0xffffffff);
  CHECK(word("not.b32 %r9, 5;") == ~5u);
  CHECK(word("bfi.b32 %r9, 5, -1, 4, 3;") == 0xffffffdf);
  CHECK(word("prmt.b32 %r9, 287454020, 1432778632, 30258;") == 0x55661122);
  CHECK(word("shf.r.wrap.b32 %r9, 305419896, 1, 8;") == 0x01123456);
  CHECK(word("shf.l.wrap.b32 %r9, 305419896, 1, 8;") == 0x00000112);
  CHECK(word("shf.l.wrap.b32 %r9, 305419896, 1, 32;") == 1);
  CHECK(word("bfind.shiftamt.u32 %r9, 16;") == 27);
  CHECK(word("brev.b32 %r9, 1;") == 0x80000000);
}

TEST_CASE("comparisons know signs and numbers that are none", "[emulated]") {
  const auto holds = [](const std::string& comparison) {
    return word("setp." + comparison + ";\n selp.u32 %r9, 1, 0, %p1;") == 1;
  };
  CHECK(holds("lt.s32 %p1, -1, 1"));
  CHECK_FALSE(holds("lt.u32 %p1, -1, 1"));
  CHECK(holds("eq.s64 %p1, -1, -1"));
  CHECK_FALSE(holds("lt.f32 %p1, 0f7FC00000, 0f3F800000"));
  CHECK(holds("geu.f32 %p1, 0f7FC00000, 0f3F800000"));
  CHECK(holds("neu.f32 %p1, 0f7FC00000, 0f7FC00000"));
  CHECK_FALSE(holds("eq.f32 %p1, 0f7FC00000, 0f7FC00000"));
}

TEST_CASE("conversions round to nearest, ties to even", "[emulated]") {
  CHECK(word("cvt.rn.bf16x2.f32 %r9, 0f3F808000, 0f3F818000;") == 0x3f803f82);
  CHECK(word("cvt.rn.f16x2.f32 %r9, 0f3F800000, 0f477FF000;") == 0x3c007c00);  // 65520: infinite
  CHECK(word("cvt.rna.tf32.f32 %r9, 0f3F801000;") == 0x3f802000);
  CHECK(word("mov.b32 {%rs1, %rs2}, 305419896;\n mov.b32 %r9, {%rs2, %rs1};") == 0x56781234);
}

TEST_CASE("a sign is copied from the first number to the second", "[emulated]") {
  CHECK(word("copysign.f32 %r9, 0fC0000000, 0f3F800000;") == 0xbf800000);
  CHECK(word("copysign.f32 %r9, 0f40000000, 0fBF800000;") == 0x3f800000);
}

TEST_CASE("scopes have registers and labels of their own", "[emulated]") {
  CHECK(word("mov.u32 %r9, 0;\n"
             "{ .reg .pred p; setp.lt.u32 p, %r1, 99;\nagain: add.s32 %r9, %r9, 1;\n"
             "@!p bra again; }\n"
             "{ .reg .pred p; setp.lt.u32 p, %r9, 5;\nagain: add.s32 %r9, %r9, 1;\n"
             "setp.lt.u32 p, %r9, 5;\n@p bra again; }\n") == 5);
}

TEST_CASE("lanes exchange and meet", "[emulated]") {
  const auto out =
      run("add.s32 %r2, %r1, 100;\n xor.b32 %r3, %r1, 5;\n"
          "shfl.sync.idx.b32 %r4|%p1, %r2, %r3, 31, -1;\n"
          "mul.wide.u32 %rd2, %r1, 4;\n add.s64 %rd3, %rd1, %rd2;\n st.global.u32 [%rd3], %r4;",
          32);
  for (std::uint32_t lane = 0; lane < 32; ++lane) CHECK(out[lane] == (lane ^ 5) + 100);
  CHECK(says(fault("setp.lt.u32 %p1, %r1, 7;\n@%p1 bra $skip;\nbar.warp.sync -1;\n$skip:"),
             "waits for what does not come"));
  CHECK(says(fault("setp.lt.u32 %p1, %r1, 7;\n@%p1 bra $other;\nbar.sync 0;\nbra $end;\n"
                   "$other:\nbar.sync 0;\n$end:"),
             "not together"));
}

TEST_CASE("threads of a block see what others wrote behind a barrier", "[emulated]") {
  const std::string body =
      "mov.u64 %rd4, smem;\n mul.wide.u32 %rd2, %r1, 4;\n add.s64 %rd5, %rd4, %rd2;\n"
      "st.shared.u32 [%rd5], %r1;\n bar.sync 0;\n xor.b32 %r3, %r1, 127;\n"
      "mul.wide.u32 %rd6, %r3, 4;\n add.s64 %rd7, %rd4, %rd6;\n ld.shared.u32 %r4, [%rd7];\n"
      "add.s64 %rd3, %rd1, %rd2;\n st.global.u32 [%rd3], %r4;";
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const auto out = run(body, 128, 128, seed);
    for (std::uint32_t thread = 0; thread < 128; ++thread) CHECK(out[thread] == (thread ^ 127));
  }
  const std::size_t barrier = body.find("bar.sync 0;");
  const std::string without = body.substr(0, barrier) + body.substr(barrier + 11);
  CHECK(says(fault(without, 128, 128), "no barrier is between that and"));
}

TEST_CASE("a transaction barrier opens when arrivals and bytes are there", "[emulated]") {
  const std::string set_up =
      "mov.u64 %rd4, smem;\n cvt.u32.u64 %r5, %rd4;\n setp.ne.s32 %p1, %r1, 0;\n"
      "@!%p1 mbarrier.init.shared::cta.b64 [%r5], 1;\n bar.sync 0;\n";
  const std::string wait =
      "again: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r5], 0;\n@!%p2 bra again;\n";
  CHECK(fault(set_up + "@!%p1 mbarrier.arrive.shared::cta.b64 _, [%r5];\n" + wait).empty());
  CHECK(says(fault(set_up + wait), "waits for what does not come"));
  const auto asked = [](const std::string& into) {  // does not wait
    return "mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r5], 0;\nselp.u32 " + into +
           ", 1, 0, %p2;\n";
  };
  CHECK(word(set_up + asked("%r8") + "bar.warp.sync -1;\n" +
             "@!%p1 mbarrier.arrive.shared::cta.b64 _, [%r5];\n" + wait + asked("%r9") +
             "shl.b32 %r9, %r9, 1;\nor.b32 %r9, %r9, %r8;\n") == 2);
  CHECK(
      says(fault(set_up + "@!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r5], 16;\n" + wait),
           "waits for what does not come"));
  CHECK(says(fault("mov.u64 %rd4, smem;\n cvt.u32.u64 %r5, %rd4;\n" + wait),
             "no barrier was set up"));
  CHECK(says(fault(set_up + "@!%p1 st.shared.u32 [%rd4], %r1;"), "a barrier is overwritten"));
}

TEST_CASE("the copy engine reads what threads wrote and fenced", "[emulated]") {
  const auto copied = [](const std::string& behind_store, const std::string& behind_fence = "") {
    return fault(
        "mov.u64 %rd4, smem;\n cvt.u32.u64 %r5, %rd4;\n setp.ne.s32 %p1, %r1, 0;\n"
        "@!%p1 mbarrier.init.shared::cta.b64 [%r5], 1;\n"
        "@!%p1 fence.mbarrier_init.release.cluster;\n"
        "setp.ne.s32 %p2, %r1, 5;\n@!%p2 st.global.u32 [%rd1+4], %r1;\n" +
            behind_store + behind_fence +
            "bar.sync 0;\n@%p1 bra $wait;\n"
            "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r5], 16;\n"
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
            "[%r5+16], [%rd1], 16, [%r5];\n"
            "$wait: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r5], 0;\n"
            "@!%p3 bra $wait;\n",
        32, 4);
  };
  const std::string fence = "fence.proxy.async.global;\n";
  const char* unfenced = "global memory is read asynchronously without a fence";
  CHECK(copied("@!%p2 " + fence).empty());
  CHECK(says(copied(""), unfenced));
  CHECK(says(copied("@%p2 " + fence), unfenced));  // by all others
  CHECK(says(copied(fence, "@!%p2 st.global.u32 [%rd1+8], %r1;\n"), unfenced));
}

TEST_CASE("memory that is not there is not touched", "[emulated]") {
  CHECK(says(fault("st.global.u32 [%rd1+4], %r1;"), "that nobody gave, 0 behind the end"));
  CHECK(says(fault("st.global.u16 [%rd1+1], %rs1;"), "1 behind a multiple"));
  CHECK(says(fault("mov.u64 %rd4, smem;\n ld.shared.u32 %r4, [%rd4+4096];"),
             "4 bytes at 4096 of 4096"));
  CHECK(says(fault("ld.param.u64 %rd4, [kernel_param_0+8];"), "past the end of the argument"));
}

TEST_CASE("what is unknown is named", "[emulated]") {
  CHECK(says(fault("frobnicate.u32 %r2, %r1;"), "unknown instruction frobnicate.u32 in line"));
  CHECK(says(fault("add.s32 %r2, %r1, %q7;"), "unknown operand %q7"));
  CHECK(says(fault("bra $nowhere;"), "no label $nowhere"));
}
