#include <algorithm>

#include "autotune/io/builtin.h"
#include "kernels/gemm/wgmma_layout.h"
#include "support.h"
#include "test/support/catch.h"

namespace autotune::io {
namespace {

const std::string kGpu =
    "name: My GPU\ncc: 9.0\nsm_count: 100\nboost_mhz: 1500\nl2_bytes: 1048576\n"
    "dram_bytes: 1073741824\ndram_gb_per_s: 900.5\nfp32_tflops: 20\nf16_bf16_tflops: 300\n"
    "tf32_tflops: 150\n";

Expected<DeviceSpec> parse(const std::string& text) {
  return parse_gpu(text, "g.yaml", all_capabilities());
}

std::string error_of(const std::string& text) {
  const auto device = parse(text);
  REQUIRE(is_bad_input(device));
  return device.error().message;
}

TEST_CASE("wgmma's layout counts on as much shared memory as there is with its instructions") {
  for (const ArchLimits& limits : known_capabilities()) {
    if (limits.has(Feature::wgmma)) {
      CHECK(limits.smem_optin_per_block == gemm::wgmma::kMostShared);
    }
  }
}

TEST_CASE("all compute capabilities are known, with their limits") {
  std::vector<int> ccs;
  for (const ArchLimits& limits : known_capabilities()) ccs.push_back(limits.cc);
  CHECK(ccs == std::vector<int>{75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121});
  const ArchLimits* hopper = find_capability(90);
  REQUIRE(hopper != nullptr);
  CHECK(hopper->arch == "sm_90a");
  CHECK(hopper->smem_per_sm == 233472);
  CHECK(hopper->smem_optin_per_block == 232448);
  CHECK(hopper->smem_reserved_per_block == 1024);
  CHECK(hopper->smem_granularity == 128);
  CHECK(hopper->warps_per_sm == 64);
  CHECK(hopper->threads_per_sm == 2048);
  CHECK(hopper->blocks_per_sm == 32);
  CHECK(hopper->cluster_portable == 8);
  CHECK(hopper->registers_per_block == 65536);
  CHECK(hopper->static_smem_per_block == 49152);
  CHECK(hopper->has(Feature::wgmma));
  CHECK_FALSE(hopper->has(Feature::tcgen05));
  CHECK(hopper->mma_dtypes.size() == 6);
  const ArchLimits* turing = find_capability(75);
  REQUIRE(turing != nullptr);
  CHECK(turing->features == 0);
  CHECK(turing->mma_dtypes == std::vector<std::string>{"f16"});
  CHECK(turing->smem_reserved_per_block == 0);
  CHECK(find_capability(91) == nullptr);
}

TEST_CASE("known GPUs are sorted by compute capability and name, and found by name or slug") {
  const auto devices = known_devices();
  CHECK(devices.size() == gpu_files());
  CHECK(std::is_sorted(devices.begin(), devices.end(), [](const auto& a, const auto& b) {
    return std::pair(a.limits.cc, a.name) < std::pair(b.limits.cc, b.name);
  }));
  const DeviceSpec* h200 = find_device("NVIDIA H200");
  REQUIRE(h200 != nullptr);
  CHECK(find_device("nvidia-h200") == h200);
  CHECK(find_device("Nvidia-H200") == h200);
  CHECK(find_device("nvidia h200") == h200);
  CHECK(find_device("H200") == nullptr);  // never by part of a name
  CHECK(find_device("") == nullptr);
  CHECK(h200->limits.smem_optin_per_block == 232448);
  CHECK(h200->sm_count == 132);
  CHECK(h200->dram_bytes == 150109880320);
  CHECK(h200->dram_gb_per_s == 4800);
  CHECK(h200->fp8_tflops == 1979);
  CHECK(h200->derived == std::vector<std::string>{"tf32_tflops", "fp32_tflops"});
  CHECK(h200->launch_us == 2.78);
  CHECK(h200->measured_f16_bf16_tflops == 801);
  CHECK(h200->clustered_sms == 120);
  CHECK(find_device("nvidia-h100-80gb-hbm3")->gpc_sms == 16);
  REQUIRE(h200->cold_read_us.size() == 8);
  CHECK(h200->cold_read_us[2].mib == 32);
  CHECK(h200->cold_read_us[2].us == 11.36);
}

TEST_CASE("marks of what nobody verified are kept, absent peaks are 0") {
  const DeviceSpec* thor = find_device("NVIDIA Thor");
  REQUIRE(thor != nullptr);
  CHECK(thor->limits.arch == "sm_110a");
  CHECK(thor->unverified ==
        std::vector<std::string>{"boost_mhz", "f16_bf16_tflops", "fp8_tflops", "tf32_tflops"});
  CHECK(thor->derived == std::vector<std::string>{"dram_gb_per_s", "fp32_tflops"});
  const DeviceSpec* t4 = find_device("tesla-t4");
  REQUIRE(t4 != nullptr);
  CHECK(t4->tf32_tflops == 0);
  CHECK(t4->fp8_tflops == 0);
}

TEST_CASE("the tables are what the files say, field by field") {
  for (const DeviceSpec& built_in : known_devices()) {
    INFO(built_in.name);
    const auto file = load_gpu(source_dir() / "configs/gpus" / (built_in.slug + ".yaml"));
    REQUIRE(file);
    CHECK(*file == built_in);
  }
}

TEST_CASE("a GPU's file may replace limits and carry measurements") {
  const auto device = parse(kGpu +
                            "clustered_sms: 96\n"
                            "gpc_sms: 14\n"
                            "limits: {smem_optin_per_block: 65536, blocks_per_sm: 8}\n"
                            "measured:\n  launch_us: 3.5\n  f16_bf16_tflops: 700\n"
                            "  cold_read_us: [{mib: 1, us: 2}, {mib: 10, us: 9.5}]\n");
  REQUIRE(device);
  CHECK(device->slug == "my-gpu");
  CHECK(device->limits.smem_optin_per_block == 65536);
  CHECK(device->limits.blocks_per_sm == 8);
  CHECK(device->limits.smem_per_sm == 233472);
  CHECK(device->launch_us == 3.5);
  CHECK(device->measured_f16_bf16_tflops == 700);
  CHECK(device->clustered_sms == 96);
  CHECK(device->gpc_sms == 14);
  REQUIRE(device->cold_read_us.size() == 2);
  CHECK(device->cold_read_us[1].us == 9.5);
}

TEST_CASE("mistakes in a GPU's file name file and line") {
  CHECK_THAT(
      error_of(kGpu + "smem: 1\n"),
      Catch::Matchers::StartsWith("g.yaml:11: unknown key 'smem' in a GPU; accepted: name,"));
  for (const char* name : {R"("My\nGPU")", R"("My\u007fGPU")", R"("\e[2J")"}) {
    CHECK(error_of("name: " + std::string(name) + kGpu.substr(kGpu.find('\n'))) ==
          "g.yaml:1: name: holds a line break or another control character");
  }
  CHECK_THAT(error_of(kGpu + "unverified: [sms]\n"),
             Catch::Matchers::StartsWith("g.yaml:11: unverified: expected some of cc, sm_count,"));
  CHECK(
      error_of(kGpu + "limits: {smem_optin_per_block: 233000}\n") ==
      "g.yaml:11: smem_optin_per_block 233000 and smem_reserved_per_block 1024 exceed smem_per_sm "
      "233472");
  CHECK_THAT(error_of(kGpu + "measured: {cold_read_us: [{mib: 2, us: 2}, {mib: 1, us: 3}]}\n"),
             HasText("points must ascend"));
  const auto with_cc = [](const std::string& cc) {
    std::string text = kGpu;
    return text.replace(text.find("9.0"), 3, cc);
  };
  CHECK(error_of(with_cc("9.1")) ==
        "g.yaml:2: cc: 9.1 is not known; known: 7.5, 8.0, 8.6, 8.7, 8.9, 9.0, 10.0, 10.3, 11.0, "
        "12.0, 12.1");
  for (const char* cc : {"9", "90", "x.0", "9.x", "9.00", ".9", "-9.0", "123.0", "[9.0]"}) {
    INFO(cc);
    CHECK_THAT(error_of(with_cc(cc)), Catch::Matchers::StartsWith("g.yaml:2: cc: expected"));
  }
  std::string none = kGpu;
  none.replace(none.find("sm_count: 100"), 13, "sm_count: 0");
  CHECK_THAT(error_of(none), Catch::Matchers::StartsWith("g.yaml:3: sm_count: expected"));
  std::string slow = kGpu;
  slow.erase(slow.find("tf32_tflops"));
  CHECK(error_of(slow) == "g.yaml:2: tf32_tflops is missing, and sm_90a has tensor cores for tf32");
  std::string fewer = kGpu + "clustered_sms: 96\n";
  fewer.erase(fewer.find("sm_count: 100"), 14);
  CHECK(error_of(fewer).find("lacks the key 'sm_count'") != std::string::npos);
}

TEST_CASE("the model's coefficients are optional, bounded, and the rest keep their defaults") {
  const auto plain = parse(kGpu);
  REQUIRE(plain);
  CHECK(plain->model == ModelCoefficients{});
  const auto device = parse(kGpu + "model: {dram_share: 0.8, launch_us: 4}\n");
  REQUIRE(device);
  CHECK(device->model.dram_share == 0.8);
  CHECK(device->model.launch_us == 4);
  CHECK(device->model.l2_share == ModelCoefficients{}.l2_share);
  CHECK_THAT(error_of(kGpu + "model: {dram_share: 1.2}\n"), HasText("dram_share"));
  CHECK_THAT(error_of(kGpu + "model: {dram_shore: 0.8}\n"), HasText("dram_shore"));
}

TEST_CASE("mistakes in the table of compute capabilities name file and line") {
  const std::string text = config_text("gpus/compute_capabilities.yaml");
  const auto with = [&text](const std::string& from, const std::string& to) {
    std::string changed = text;
    const std::size_t at = changed.find(from);
    REQUIRE(at != std::string::npos);
    changed.replace(at, from.size(), to);
    const auto rows = parse_compute_capabilities(changed, "cc.yaml");
    REQUIRE(is_bad_input(rows));
    return rows.error().message;
  };
  CHECK_THAT(with("cc: 8.0", "cc: 7.4"), HasText("must ascend"));
  CHECK_THAT(with("named_barriers: 16", "named_barriers: 020"), HasText("octal"));
  CHECK_THAT(with("[cp_async]", "[cp_asink]"), HasText("found 'cp_asink'"));
  CHECK_THAT(with("arch: sm_75", "arhc: sm_75"), HasText("unknown key 'arhc'"));
}

}  // namespace
}  // namespace autotune::io
