#include "autotune/gpu/cubin.h"

#include <elf.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>

#include "autotune/io/builtin.h"

namespace autotune::gpu {
namespace {

constexpr std::uint16_t kMachineCuda = 190;  // EM_CUDA

// From sm_90 on the section .nv.shared.<entry> counts what the system reserves at the start of each
// block's shared memory; the driver's attribute and ptxas' report do not.
constexpr int kFirstThatCountsReserve = 90;

// Attributes of .nv.info sections: {format, kind, 16-bit value or length, payload}. The names are
// those that cuobjdump prints (EIATTR_*); the numbers were read off cubins of NVRTC 13.0.
enum Attribute : std::uint8_t {
  kMaxThreads = 0x05,    // x, y, z of __launch_bounds__
  kExactThreads = 0x10,  // x, y, z of a required block size
  kFrameSize = 0x11,     // symbol, bytes
  kRegisters = 0x2f,     // symbol, count
  kClusterShape = 0x3d,  // x, y, z of __cluster_dims__
  kBarriers = 0x4c,      // value
};
constexpr std::uint8_t kPayloadFormat = 4;

tl::unexpected<Error> damaged(std::string_view what) {
  return fail(ErrorCode::corrupt_file, fmt::format("not a usable cubin: {}", what));
}

// The bytes at [offset, offset + size), empty optional where they are not all there.
std::optional<std::string_view> slice(std::string_view bytes, std::uint64_t offset,
                                      std::uint64_t size) {
  if (offset > bytes.size() || size > bytes.size() - offset) return std::nullopt;
  return bytes.substr(offset, size);
}

template <class T>
std::optional<T> load(std::string_view bytes, std::uint64_t offset) {
  const auto piece = slice(bytes, offset, sizeof(T));
  if (!piece) return std::nullopt;
  T value;
  std::memcpy(&value, piece->data(), sizeof(T));
  return value;
}

std::string_view text_at(std::string_view table, std::uint64_t offset) {
  if (offset >= table.size()) return {};
  const std::string_view rest = table.substr(offset);
  const std::size_t end = rest.find('\0');
  return end == std::string_view::npos ? std::string_view{} : rest.substr(0, end);
}

class Elf {
 public:
  static Expected<Elf> open(std::string_view image) {
    const auto header = load<Elf64_Ehdr>(image, 0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return damaged("no ELF");
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
        header->e_machine != kMachineCuda) {
      return damaged("an ELF of another machine");
    }
    if (header->e_shentsize != sizeof(Elf64_Shdr)) return damaged("odd section headers");
    Elf elf(image, *header);
    const auto names = elf.header(header->e_shstrndx);
    if (!names) return damaged("no section names");
    elf.names_ = elf.content(*names).value_or(std::string_view{});
    return elf;
  }

  // ABI 8 (CUDA 13) moved the architecture to the second byte of the flags.
  int capability() const {
    const bool moved = header_.e_ident[EI_ABIVERSION] >= 8;
    return static_cast<int>(moved ? header_.e_flags >> 8 & 0xff : header_.e_flags & 0xff);
  }

  std::optional<Elf64_Shdr> header(std::uint64_t index) const {
    if (index >= header_.e_shnum) return std::nullopt;
    return load<Elf64_Shdr>(image_, header_.e_shoff + index * sizeof(Elf64_Shdr));
  }

  std::optional<Elf64_Shdr> section(std::string_view name) const {
    for (std::uint64_t i = 0; i < header_.e_shnum; ++i) {
      const auto found = header(i);
      if (found && text_at(names_, found->sh_name) == name) return found;
    }
    return std::nullopt;
  }

  std::optional<std::string_view> content(const Elf64_Shdr& section) const {
    if (section.sh_type == SHT_NOBITS) return std::string_view{};
    return slice(image_, section.sh_offset, section.sh_size);
  }

  // Index of a global function in .symtab.
  std::optional<std::uint32_t> symbol(std::string_view name) const {
    const auto table = section(".symtab");
    if (!table) return std::nullopt;
    const auto strings = header(table->sh_link);
    if (!strings) return std::nullopt;
    const std::string_view entries = content(*table).value_or(std::string_view{});
    const std::string_view text = content(*strings).value_or(std::string_view{});
    for (std::uint32_t i = 0; i < entries.size() / sizeof(Elf64_Sym); ++i) {
      const auto entry = load<Elf64_Sym>(entries, i * sizeof(Elf64_Sym));
      if (entry && ELF64_ST_TYPE(entry->st_info) == STT_FUNC &&
          text_at(text, entry->st_name) == name)
        return i;
    }
    return std::nullopt;
  }

 private:
  Elf(std::string_view image, const Elf64_Ehdr& header) : image_(image), header_(header) {}
  std::string_view image_;
  Elf64_Ehdr header_;
  std::string_view names_;
};

// Calls visit(kind, value, payload) for each attribute; false where the bytes do not add up.
template <class Visit>
bool for_each_attribute(std::string_view info, Visit visit) {
  std::size_t at = 0;
  while (at < info.size()) {
    const auto format = load<std::uint8_t>(info, at);
    const auto kind = load<std::uint8_t>(info, at + 1);
    const auto value = load<std::uint16_t>(info, at + 2);
    if (!format || !kind || !value) return false;
    at += 4;
    std::string_view payload;
    if (*format == kPayloadFormat) {
      const auto piece = slice(info, at, *value);
      if (!piece) return false;
      payload = *piece;
      at += *value;
    }
    visit(*kind, *value, payload);
  }
  return true;
}

// x * y * z of a shape, at most `limit`.
std::int32_t volume(std::string_view payload, std::int64_t limit) {
  std::int64_t product = 1;
  for (int axis = 0; axis < 3; ++axis) {
    const std::uint32_t extent = load<std::uint32_t>(payload, axis * 4).value_or(1);
    product = std::min<std::int64_t>(product * extent, limit);
  }
  return static_cast<std::int32_t>(product);
}

// The most threads whose registers one block can have.
std::int32_t threads_by_registers(const ArchLimits& limits, std::int32_t registers) {
  const int unit = limits.register_unit_per_warp;
  const int per_warp = (registers * 32 + unit - 1) / unit * unit;
  const int warps = limits.registers_per_block / per_warp;
  const int whole = warps / limits.sub_partitions * limits.sub_partitions;
  return std::min(whole * 32, limits.threads_per_block);
}

bool read_shared_attributes(std::string_view info, std::uint32_t symbol, ActualResources& out) {
  return for_each_attribute(info, [&](std::uint8_t kind, std::uint16_t, std::string_view payload) {
    if (load<std::uint32_t>(payload, 0) != symbol) return;
    const std::uint32_t value = load<std::uint32_t>(payload, 4).value_or(0);
    const auto bounded = static_cast<std::int32_t>(std::min<std::uint32_t>(value, 1u << 30));
    if (kind == kRegisters) out.registers = bounded;
    if (kind == kFrameSize) out.stack_bytes = bounded;
  });
}

bool read_own_attributes(std::string_view info, std::int32_t most, ActualResources& out) {
  return for_each_attribute(info,
                            [&](std::uint8_t kind, std::uint16_t value, std::string_view payload) {
                              if (kind == kMaxThreads || kind == kExactThreads)
                                out.max_threads = volume(payload, most);
                              if (kind == kClusterShape) out.cluster = volume(payload, 1 << 20);
                              if (kind == kBarriers) out.barriers = value & 0xff;
                            });
}

}  // namespace

Expected<ActualResources> read_cubin(std::string_view image, std::string_view entry) {
  auto elf = Elf::open(image);
  if (!elf) return tl::unexpected(elf.error());
  const int capability = elf->capability();
  const ArchLimits* limits = io::find_capability(capability);
  if (limits == nullptr) {
    return damaged(fmt::format("it is for the unknown compute capability {}.{}", capability / 10,
                               capability % 10));
  }
  const auto symbol = elf->symbol(entry);
  const auto shared_info = elf->section(".nv.info");
  const auto own_info = elf->section(fmt::format(".nv.info.{}", entry));
  if (!symbol || !shared_info || !own_info) {
    return damaged(fmt::format("no entry point '{}' in it", entry));
  }
  ActualResources out;
  const auto shared_bytes = elf->content(*shared_info);
  const auto own_bytes = elf->content(*own_info);
  if (!shared_bytes || !own_bytes || !read_shared_attributes(*shared_bytes, *symbol, out) ||
      !read_own_attributes(*own_bytes, limits->threads_per_block, out)) {
    return damaged("its attributes are cut short");
  }
  if (out.registers <= 0 || out.registers > limits->registers_per_thread) {
    return damaged("it tells no register count");
  }

  const std::int32_t by_registers = threads_by_registers(*limits, out.registers);
  out.max_threads = out.max_threads > 0 ? std::min(out.max_threads, by_registers) : by_registers;
  if (const auto memory = elf->section(fmt::format(".nv.shared.{}", entry))) {
    const std::int64_t reserve =
        capability >= kFirstThatCountsReserve ? limits->smem_reserved_per_block : 0;
    const std::int64_t size = std::min<std::uint64_t>(memory->sh_size, 1u << 30);
    out.static_smem_bytes = static_cast<std::int32_t>(std::max<std::int64_t>(size - reserve, 0));
  }
  return out;
}

namespace {

// The number in front of `label` in `line`, 0 where there is none.
std::int32_t number_before(std::string_view line, std::string_view label) {
  const std::size_t end = line.find(label);
  if (end == std::string_view::npos) return 0;
  std::size_t begin = end;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  std::int64_t value = 0;
  for (const char digit : line.substr(begin, end - begin)) {
    value = std::min<std::int64_t>(value * 10 + (digit - '0'), 1 << 30);
  }
  return static_cast<std::int32_t>(value);
}

}  // namespace

void add_compiler_report(std::string_view log, std::string_view entry, ActualResources& resources) {
  const std::string title = fmt::format("Function properties for {}\n", entry);
  const std::size_t found = log.find(title);
  if (found != std::string_view::npos) {
    std::string_view line = log.substr(found + title.size());
    line = line.substr(0, line.find('\n'));
    resources.spill_store_bytes = number_before(line, " bytes spill stores");
    resources.spill_load_bytes = number_before(line, " bytes spill loads");
  }
  constexpr std::array<std::string_view, 4> kCodes{"C7508", "C7510", "C7511", "C7512"};
  for (const std::string_view code : kCodes) {
    if (log.find(code) != std::string_view::npos) resources.serialised = true;
  }
}

}  // namespace autotune::gpu
