#include "autotune/cli/device_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>

#include "autotune/cli/request.h"
#include "autotune/cli/text.h"
#include "autotune/io/builtin.h"
#include "autotune/io/load.h"

namespace autotune::cli {
namespace {

constexpr int kMostSuggestions = 5;

bool is_index(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

// Whether a part of the slug of what was typed ("h200" of "h200-nvl") is a part of the other.
bool similar(const std::string& typed, const std::string& known) {
  std::size_t begin = 0;
  while (begin < typed.size()) {
    const std::size_t end = std::min(typed.find('-', begin), typed.size());
    const std::string part = typed.substr(begin, end - begin);
    if (part.size() > 1 && part != "nvidia" && known.find(part) != std::string::npos) return true;
    begin = end + 1;
  }
  return false;
}

std::string suggestions(const std::string& typed) {
  const std::string slug = slug_of(typed);
  std::string text;
  int count = 0;
  for (const DeviceSpec& device : io::known_devices()) {
    if (count == kMostSuggestions) break;
    if (!similar(slug, device.slug)) continue;
    text += fmt::format("{}{}", count == 0 ? "; similar: " : ", ", device.slug);
    ++count;
  }
  return text + "; 'autotune devices' lists all, --gpu-spec FILE describes another";
}

// What can be done where no GPU is.
constexpr const char* kNeedsNone = "; 'autotune plan' and 'autotune explain' need no GPU";

tl::unexpected<Error> absent(const std::string& name, const GpusHere& here) {
  const std::string reason =
      here ? fmt::format("this machine has {}", here->front().spec.name) : here.error().message;
  return fail(ErrorCode::no_gpu, fmt::format("{} is not here, and this command needs it: {}{}",
                                             name, reason, kNeedsNone));
}

const gpu::DetectedGpu* find_here(const std::string& slug, const GpusHere& here) {
  if (!here) return nullptr;
  const auto found = std::find_if(here->begin(), here->end(), [&](const gpu::DetectedGpu& each) {
    return each.spec.slug == slug;
  });
  return found == here->end() ? nullptr : &*found;
}

Expected<DeviceChoice> choose_auto(Need need, const GpusHere& here) {
  if (here && !here->empty()) return DeviceChoice{here->front().spec, here->front().index};
  const std::string reason = here ? "this machine has no GPU" : here.error().message;
  if (need == Need::gpu) return fail(ErrorCode::no_gpu, reason + kNeedsNone);
  return fail(ErrorCode::no_gpu,
              fmt::format("--device auto: {}; name a GPU to plan for, e.g. --device nvidia-h200 "
                          "('autotune devices' lists them)",
                          reason));
}

Expected<DeviceChoice> choose_index(const std::string& text, const GpusHere& here) {
  const auto index = read_count("--device", text, 0, std::numeric_limits<int>::max());
  if (!index) return tl::unexpected(index.error());
  if (!here) {
    return fail(ErrorCode::no_gpu, fmt::format("--device {} is a GPU of this machine: {}", text,
                                               here.error().message));
  }
  for (const gpu::DetectedGpu& each : *here) {
    if (static_cast<std::uint64_t>(each.index) == *index) {
      return DeviceChoice{each.spec, each.index};
    }
  }
  return fail(ErrorCode::bad_input,
              fmt::format("--device {}: this machine has {}, counted from 0", text,
                          counted(static_cast<std::int64_t>(here->size()), "GPU")));
}

Expected<DeviceChoice> choose_name(const std::string& text, Need need, const GpusHere& here) {
  if (const gpu::DetectedGpu* found = find_here(slug_of(text), here)) {
    return DeviceChoice{found->spec, found->index};
  }
  const DeviceSpec* known = io::find_device(text);
  if (known == nullptr) {
    return fail(ErrorCode::bad_input,
                fmt::format("--device: unknown GPU '{}'{}", text, suggestions(text)));
  }
  if (need == Need::gpu) return absent(known->name, here);
  return DeviceChoice{*known, std::nullopt};
}

// The file's numbers, on the GPU of that name where one is here.
Expected<DeviceChoice> choose_described(const Options& options, Need need, const GpusHere& here) {
  if (!options.device.empty() && options.device != "auto") {
    return fail(ErrorCode::bad_input, "--device and --gpu-spec both name a GPU; give one of them");
  }
  const auto spec = io::load_gpu(options.gpu_spec);
  if (!spec) return tl::unexpected(spec.error());
  const gpu::DetectedGpu* found = find_here(spec->slug, here);
  if (found != nullptr) return DeviceChoice{*spec, found->index};
  if (need == Need::gpu) return absent(spec->name, here);
  return DeviceChoice{*spec, std::nullopt};
}

}  // namespace

Expected<DeviceChoice> choose_device(const Options& options, Need need) {
  return choose_device(options, need, gpu::detect_gpus());
}

Expected<DeviceChoice> choose_device(const Options& options, Need need, const GpusHere& here) {
  if (!options.gpu_spec.empty()) return choose_described(options, need, here);
  if (options.device.empty() || options.device == "auto") return choose_auto(need, here);
  if (is_index(options.device)) return choose_index(options.device, here);
  return choose_name(options.device, need, here);
}

}  // namespace autotune::cli
