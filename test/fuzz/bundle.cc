// Bundles behind their checksum: a database that somebody edited is an error or is read, and
// reading it harms nobody.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "cache/bundle.h"
#include "kernels/problem.h"
#include "test/fuzz/edits.h"

namespace autotune::cache {
namespace {

constexpr const char* kDevice = "NVIDIA H200 cc=90 sms=132 smem=232448 memory=160GiB";

CubinKey cubin_key() { return {"source", "sm_90a", "nvrtc 13.0"}; }

std::string sound_image() {
  auto bundle = Bundle::create({"NVIDIA H200", kDevice, "sm_90a", "gemm", "0.1.0", 1'700'000'000});
  if (!bundle) std::abort();
  for (std::int64_t m = 1; m < 4; ++m) {
    WinnerRecord winner;
    winner.trial.problem.m = m;
    winner.trial.problem.n = winner.trial.problem.k = 64;
    winner.trial.problem = *checked(winner.trial.problem);
    winner.trial.key = {problem_key(winner.trial.problem), kDevice, "mma:block_m=128", "source",
                        "nvrtc 13.0"};
    if (!bundle->store().crown(winner)) std::abort();
  }
  if (!bundle->store().put_cubin(cubin_key(), {std::string(5000, 'c'), {}})) std::abort();
  // What follows the header: see Bundle.
  std::string file = (std::filesystem::temp_directory_path() / "fuzz_bundle_XXXXXX").string();
  close(mkstemp(file.data()));
  if (!bundle->write(file)) std::abort();
  std::ifstream in(file, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  std::filesystem::remove(file);
  const std::size_t begin = whole.find("SQLite format 3");
  if (begin == std::string::npos) std::abort();
  return whole.substr(begin);
}

void read_all(const Bundle& bundle) {
  const Store& store = bundle.store();
  (void)bundle.info();
  (void)store.verify();
  (void)store.known_winners("gemm");
  const auto winners = store.winners("gemm", "");
  if (winners) {
    for (const WinnerRecord& winner : *winners) {
      (void)store.trials(winner.trial.key.problem_key, winner.trial.key.device_fingerprint);
      (void)store.known_winner(winner.trial.key.problem_key, winner.trial.key.device_fingerprint);
    }
  }
  (void)store.compilers("source", "sm_90a");
  const auto cubin = store.cubin(cubin_key());
  // A cubin that was changed is none.
  if (cubin && *cubin) fuzz::require((*cubin)->image == std::string(5000, 'c'));
}

}  // namespace
}  // namespace autotune::cache

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace autotune;
  static const std::string sound = cache::sound_image();
  const std::string_view edits(reinterpret_cast<const char*>(data), size);
  const auto bundle = cache::Bundle::of_image(fuzz::edited(sound, edits), "fuzz.bundle");
  if (bundle) cache::read_all(*bundle);
  return 0;
}
