// Sweep files: many configs of one problem measured on one GPU, failures included; what search
// strategies are replayed on and the performance model is fitted to.
//
// Text, one file per problem:
//   sweep 1
//   device NVIDIA H200
//   problem family=gemm m=4096 n=4096 k=4096 lda=4096 ... mode=cold
//   space gemm_space.yaml
//   reference mma:block_m=128,...
//   run date=2026-01-31 driver=13.0 compiler=nvrtc_13.0 seed=1
//   kernel mma block_m,block_n,...
//   mma 128,128,64,3,2,4,0,8 1.0372 201.5
//   mma 256,256,64,4,2,4,0,1 spilled
// A `run` line stands before the rows that the run measured; a `kernel` line before a kernel's
// first row. A row is a config with its time as a multiple of the reference config's, which was
// timed in pairs beside it (clocks drift more than configs differ), and the reference's time then
// in microseconds; or what became of it.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "autotune/types.h"
#include "kernels/config.h"
#include "kernels/verdict.h"

namespace autotune::io {

struct SweepRow {
  Config config;
  Outcome outcome = Outcome::ok;
  double ratio = 0;         // only for ok: time / the reference's
  double reference_us = 0;  // only for ok
};

struct SweepRun {
  std::string date;      // "2026-01-31"
  std::string driver;    // CUDA version of the driver, "13.0"
  std::string compiler;  // "nvrtc 13.0"
  std::uint64_t seed = 1;
};

struct Sweep {
  std::string device;  // name
  Problem problem;     // checked
  std::string space;   // name of what the configs were drawn from
  Config reference;
  std::vector<SweepRun> runs;
  std::vector<SweepRow> rows;  // no config twice

  // The median over all rows; 0 without any that is ok.
  double reference_us() const;
};

// bad_input names the line; a last one that was cut off is left out. What a kernel's parameters are
// is read from the file; a parameter that it does not name takes its fallback.
Expected<Sweep> parse_sweep(std::string_view text, const std::string& origin);
Expected<Sweep> load_sweep(const std::filesystem::path& file);
// One file, or every *.sweep of a folder in the order of their names; bad_input where none is.
Expected<std::vector<std::filesystem::path>> sweep_files(
    const std::filesystem::path& file_or_folder);
// All of them.
Expected<std::vector<Sweep>> load_sweeps(const std::filesystem::path& file_or_folder);

// "gemm_4096x4096x4096_bf16_tn.sweep", with what is unusual about the problem added.
std::string sweep_file_name(const Problem& problem);

// The lines of a file as they are written one after another.
class SweepText {
 public:
  std::string header(const Sweep& sweep) const;
  std::string run(const SweepRun& run) const;
  std::string row(const SweepRow& row);  // with its kernel's line, where it is the first
  std::string whole(const Sweep& sweep);

 private:
  std::set<std::string_view> kernels_;
};

// The whole file.
std::string sweep_text(const Sweep& sweep);

}  // namespace autotune::io
