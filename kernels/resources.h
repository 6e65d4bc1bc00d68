// What a config needs (predicted by the host twin) and what its cubin really takes.
#pragma once

#include <cstdint>

namespace autotune {

// Predicted from a Config alone. Bytes, threads, registers per thread.
struct Resources {
  std::int64_t smem_bytes = 0;         // dynamic shared memory per block
  std::int32_t static_smem_bytes = 0;  // static shared memory per block
  std::int32_t threads = 0;            // per block, the sum over roles
  std::int32_t min_blocks = 1;         // second number of __launch_bounds__
  std::int32_t registers = 0;        // estimate per thread; search::check caps it at the launch cap
  std::int32_t register_demand = 0;  // what must be live at once: above the cap ptxas spills
  // What the role that needs most is given at run time (setmaxnreg), the cap of register_demand in
  // place of the one at launch; 0 where registers are not moved.
  std::int32_t role_registers = 0;
  std::int32_t barriers = 0;         // named barriers, 0 included
  std::int32_t cluster = 1;          // blocks per cluster
  std::int64_t grid = 0;             // blocks of the whole launch
  std::int64_t workspace_bytes = 0;  // device memory besides A, B and C
  std::int64_t most_rows = 0;        // rows of C that the kernel serves at most; 0: any number
  // Registers per thread without which the code cannot be compiled at all. ptxas 13.0 spills rather
  // than fail, down to 24; an instruction whose operands must be in registers needs more.
  std::int32_t min_registers = 24;
  std::int32_t wgmma_columns = 0;   // of one warpgroup matrix instruction; 0: it uses none
  std::int32_t useful_cluster = 0;  // blocks of a cluster that gain by it at most; 0: any number
  bool cooperative = false;         // blocks wait for each other: the whole grid must run at once
};

// Read from a cubin (ELF attributes) and the compiler's log.
struct ActualResources {
  std::int32_t registers = 0;
  std::int32_t static_smem_bytes = 0;
  std::int32_t stack_bytes = 0;
  std::int32_t spill_store_bytes = 0;
  std::int32_t spill_load_bytes = 0;
  std::int32_t barriers = 0;
  std::int32_t max_threads = 0;  // CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK as compiled
  std::int32_t cluster = 1;
  bool serialised = false;  // ptxas serialised wgmma (C7510 and the like)

  // Also where the log is missing, as it is where NVRTC (12.9 on) takes code from the driver's
  // cache: what spills has a stack, and the kernels keep nothing else there (NOTES.md, "mma:
  // fp32").
  bool spills() const { return stack_bytes > 0 || spill_store_bytes > 0 || spill_load_bytes > 0; }

  friend bool operator==(const ActualResources&, const ActualResources&) = default;
};

}  // namespace autotune
