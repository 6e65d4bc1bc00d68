// `autotune devices`: the GPUs here, and those that can be planned for without one.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "autotune/cli/command.h"
#include "autotune/cli/text.h"
#include "autotune/gpu/detect.h"
#include "autotune/io/builtin.h"
#include "autotune/io/json.h"

namespace autotune::cli {
namespace {

bool names(const std::vector<std::string>& fields, std::string_view field) {
  return std::find(fields.begin(), fields.end(), field) != fields.end();
}

// The number with the mark of its field: '?' not verified, 'p' derived.
std::string marked(const DeviceSpec& device, std::string_view field, std::string number) {
  if (names(device.unverified, field)) number += "?";
  if (names(device.derived, field)) number += "p";
  return number;
}

std::string rate(const DeviceSpec& device, std::string_view field, double value) {
  return value > 0 ? marked(device, field, fmt::format("{:g}", value)) : "-";
}

Table::Column left(const char* title) { return {title, Table::Align::left}; }

std::vector<std::string> cells(const DeviceSpec& device) {
  return {fmt::format("{}.{}", device.limits.cc / 10, device.limits.cc % 10),
          marked(device, "sm_count", fmt::format("{}", device.sm_count)),
          grouped(device.limits.smem_optin_per_block),
          marked(device, "dram_bytes", gibibytes(device.dram_bytes)),
          rate(device, "dram_gb_per_s", device.dram_gb_per_s),
          rate(device, "f16_bf16_tflops", device.f16_bf16_tflops),
          rate(device, "tf32_tflops", device.tf32_tflops),
          rate(device, "fp32_tflops", device.fp32_tflops)};
}

Table table_with(std::vector<Table::Column> first) {
  first.insert(
      first.end(),
      {{"cc"}, {"SMs"}, {"smem/block"}, {"memory"}, {"GB/s"}, {"16-bit"}, {"tf32"}, {"fp32"}});
  return Table(std::move(first));
}

std::string here_text(const std::vector<gpu::DetectedGpu>& here) {
  Table table = table_with({{"index"}, left("name")});
  for (const gpu::DetectedGpu& each : here) {
    std::vector<std::string> row = cells(each.spec);
    row.insert(row.begin(), {fmt::format("{}", each.index), each.spec.name});
    table.add(std::move(row));
  }
  return fmt::format("GPUs here (driver for CUDA {}):\n{}", here.front().driver, table.str());
}

std::string known_text() {
  Table table = table_with({left("name"), left("slug")});
  for (const DeviceSpec& each : io::known_devices()) {
    std::vector<std::string> row = cells(each);
    row.insert(row.begin(), {each.name, each.slug});
    table.add(std::move(row));
  }
  return fmt::format(
      "\nKnown GPUs, for --device by name or slug (dense TFLOP/s; '?' not verified, 'p' derived "
      "from\nSMs x clock x rate, '-' not supported; of 16-bit types cc below 8.0 has fp16 "
      "alone):\n{}",
      table.str());
}

Expected<int> run(const Options&, Output& output) {
  const auto here = gpu::detect_gpus();
  io::DevicesJson document;
  for (const DeviceSpec& each : io::known_devices()) document.known.push_back(each);
  if (here) {
    for (const gpu::DetectedGpu& each : *here) document.present.push_back({each.index, each.spec});
    output.result(here_text(*here));
  } else {
    document.why_none = here.error().message;
    output.result(fmt::format("No GPU can be used here: {}\n", here.error().message));
  }
  output.text(known_text());
  if (const auto done = output.json(document); !done) return tl::unexpected(done.error());
  return kExitDone;
}

}  // namespace

const Command kDevicesCommand = {
    "devices",
    "List the GPUs here and the known ones",
    "  autotune devices\n"
    "  autotune devices --json -",
    kOutput,
    run,
};

}  // namespace autotune::cli
