#include "kernels/model_coefficients.h"

namespace autotune {
namespace {

using Model = ModelCoefficients;

constexpr Coefficient kCoefficients[] = {
    {"launch_us", &Model::launch_us, 0.5, 20},
    {"prologue_clocks", &Model::prologue_clocks, 20, 5000},
    {"cluster_clocks", &Model::cluster_clocks, 50, 10000},
    {"cluster_bytes_per_clock", &Model::cluster_bytes_per_clock, 2, 128},
    {"cluster_sum_clocks", &Model::cluster_sum_clocks, 60, 12000},
    {"workspace_sum_clocks", &Model::workspace_sum_clocks, 120, 24000},
    {"epilogue_clocks", &Model::epilogue_clocks, 40, 5000},
    {"l2_latency_clocks", &Model::l2_latency_clocks, 100, 1500},
    {"dram_latency_clocks", &Model::dram_latency_clocks, 100, 4000},
    {"smem_bytes_per_clock", &Model::smem_bytes_per_clock, 32, 256},
    {"store_bytes_per_clock", &Model::store_bytes_per_clock, 4, 128},
    {"between_tiles_bytes_per_clock", &Model::between_tiles_bytes_per_clock, 4, 64},
    {"clocks_per_copy", &Model::clocks_per_copy, 0.5, 40},
    {"warp_clocks_per_copy", &Model::warp_clocks_per_copy, 2, 200},
    {"l2_share", &Model::l2_share, 0.1, 1},
    {"dram_share", &Model::dram_share, 0.5, 1},
    {"piece_bytes", &Model::piece_bytes, 0.5, 64},
    {"ffma_share", &Model::ffma_share, 0.3, 1.6},
    {"turns_tensor_share", &Model::turns_tensor_share, 0.3, 1.6},
    {"turns_l2_bytes_per_clock", &Model::turns_l2_bytes_per_clock, 8, 128},
    {"turns_step_clocks", &Model::turns_step_clocks, 4, 800},
    {"ahead_tensor_share", &Model::ahead_tensor_share, 0.3, 1.6},
    {"ahead_l2_bytes_per_clock", &Model::ahead_l2_bytes_per_clock, 8, 128},
    {"ahead_step_clocks", &Model::ahead_step_clocks, 1, 400},
    {"pair_bytes_per_clock", &Model::pair_bytes_per_clock, 20, 256},
    {"gpc_bytes_per_clock", &Model::gpc_bytes_per_clock, 50, 2000},
    {"sides_bytes_per_clock", &Model::sides_bytes_per_clock, 100, 10000},
};

}  // namespace

std::span<const Coefficient> model_coefficients() { return kCoefficients; }

}  // namespace autotune
