// A kernel whose parameters are its resources, so that a test can put a config right at a limit.
#pragma once

#include "kernels/kernel.h"
#include "search/space.h"

namespace autotune::search {

// Parameters, in order: smem (bytes, dynamic), static_smem, threads, min_blocks, min_registers,
// demand (registers), barriers, cluster, grid, workspace (MiB), order (run-time). One structural
// constraint: threads is a multiple of 32. All kernels of the family "fake".
const Family& fake_family();
const HostTwin& fake_kernel();

// A config that fits everywhere, with the named parameters changed.
Config fake_config(std::initializer_list<std::pair<std::string_view, std::int32_t>> changes);

// The space of fake_config({}) alone, with the named parameters' values replaced.
Space fake_space(
    std::initializer_list<std::pair<std::string_view, std::vector<std::int32_t>>> values);

// The problem that tests use where any will do: 4096^3 bf16, checked, of family "fake".
Problem fake_problem();

}  // namespace autotune::search
