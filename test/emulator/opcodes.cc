#include "test/emulator/opcodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace autotune::emulator {
namespace {

constexpr std::pair<std::string_view, Type> kTypes[] = {
    {"pred", Type::pred}, {"b8", Type::b8},     {"u8", Type::u8},       {"s8", Type::s8},
    {"b16", Type::b16},   {"u16", Type::u16},   {"s16", Type::s16},     {"f16", Type::f16},
    {"bf16", Type::bf16}, {"b32", Type::b32},   {"u32", Type::u32},     {"s32", Type::s32},
    {"f32", Type::f32},   {"tf32", Type::tf32}, {"f16x2", Type::f16x2}, {"bf16x2", Type::bf16x2},
    {"b64", Type::b64},   {"u64", Type::u64},   {"s64", Type::s64},
};

std::optional<Type> find_type(std::string_view name) {
  for (const auto& [known, type] : kTypes) {
    if (known == name) return type;
  }
  return std::nullopt;
}

// The longest that fits counts.
constexpr OpName kOps[] = {
    {"mov", Op::mov},
    {"add", Op::add},
    {"sub", Op::sub},
    {"mul.lo", Op::mul},
    {"mul", Op::mul},
    {"mul.hi", Op::mul_hi},
    {"mul.wide", Op::mul_wide},
    {"mad.lo", Op::mad},
    {"mad.wide", Op::mad_wide},
    {"fma.rn", Op::fma},
    {"neg", Op::neg},
    {"abs", Op::abs},
    {"copysign", Op::copysign},
    {"min", Op::min},
    {"max", Op::max},
    {"div", Op::div},
    {"rem", Op::rem},
    {"and", Op::and_},
    {"or", Op::or_},
    {"xor", Op::xor_},
    {"not", Op::not_},
    {"shl", Op::shl},
    {"shr", Op::shr},
    {"shf.l.wrap", Op::funnel_left},
    {"shf.r.wrap", Op::funnel_right},
    {"prmt", Op::permute},
    {"bfi", Op::insert},
    {"bfind.shiftamt", Op::find_leading},
    {"brev", Op::reverse},
    {"popc", Op::count_ones},
    {"clz", Op::count_leading},
    {"selp", Op::selp},
    {"setp", Op::setp},
    {"cvt", Op::cvt},
    {"cvta", Op::mov},  // every space but shared memory has the addresses of this process
    {"ex2.approx", Op::exp2},
    {"rcp", Op::reciprocal},
    {"tanh.approx", Op::tanh},
    {"sqrt", Op::root},
    {"ld", Op::load},
    {"st", Op::store},
    {"atom", Op::add_atomic},
    {"red", Op::add_atomic},
    {"bra", Op::branch},
    {"ret", Op::end},
    {"exit", Op::end},
    {"bar.sync", Op::block_wait},
    {"bar.arrive", Op::block_arrive},
    {"bar.red.or.pred", Op::block_any},
    {"bar.warp.sync", Op::warp_wait},
    {"shfl.sync.idx", Op::shuffle},
    {"shfl.sync.bfly", Op::shuffle_xor},
    {"vote.sync.all", Op::vote_all},
    {"vote.sync.any", Op::vote_any},
    {"ldmatrix.sync.aligned.m8n8", Op::load_matrix},
    {"stmatrix.sync.aligned.m8n8", Op::store_matrix},
    {"mma.sync.aligned", Op::multiply},
    {"barrier.cluster.arrive.relaxed.aligned", Op::cluster_arrive},
    {"barrier.cluster.arrive.aligned", Op::cluster_release},
    {"barrier.cluster.wait.acquire.aligned", Op::cluster_wait},
    {"wgmma.fence.sync.aligned", Op::group_fence},
    {"wgmma.mma_async.sync.aligned", Op::group_multiply},
    {"wgmma.commit_group.sync.aligned", Op::group_commit},
    {"wgmma.wait_group.sync.aligned", Op::group_wait},
    {"cp.async.ca.shared.global", Op::copy},
    {"cp.async.cg.shared.global", Op::copy},
    {"cp.async.commit_group", Op::copy_commit},
    {"cp.async.wait_group", Op::copy_wait},
    {"mbarrier.init.shared::cta", Op::barrier_init},
    {"mbarrier.arrive.shared::cta", Op::barrier_arrive},
    {"mbarrier.arrive.expect_tx.shared::cta", Op::barrier_expect},
    {"mbarrier.arrive.shared::cluster", Op::barrier_arrive_there},
    {"mbarrier.try_wait.parity.shared::cta", Op::barrier_try},
    {"mbarrier.test_wait.parity.shared::cta", Op::barrier_test},
    {"mapa.shared::cluster", Op::map_address},
    {"st.async.shared::cluster.mbarrier::complete_tx::bytes", Op::give},
    {"cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes",
     Op::box_load},
    {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes", Op::line_load},
    {"cp.async.bulk.tensor.2d.global.shared::cta.bulk_group", Op::box_store},
    {"cp.async.bulk.commit_group", Op::box_commit},
    {"cp.async.bulk.wait_group.read", Op::box_wait},
    {"fence.proxy.async.shared::cta", Op::proxy_fence},
    {"fence.proxy.async.global", Op::global_proxy_fence},
    {"fence.mbarrier_init.release.cluster", Op::barrier_fence},
    {"prefetch.tensormap", Op::nothing},
    {"griddepcontrol.wait", Op::launch_wait},
    {"griddepcontrol.launch_dependents", Op::nothing},
    {"setmaxnreg", Op::nothing},
};

std::vector<std::string_view> parts_of(std::string_view opcode) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at <= opcode.size();) {
    const std::size_t dot = std::min(opcode.find('.', at), opcode.size());
    parts.push_back(opcode.substr(at, dot - at));
    at = dot + 1;
  }
  return parts;
}

constexpr std::pair<std::string_view, Compare> kCompares[] = {
    {"eq", Compare::eq}, {"ne", Compare::ne}, {"lt", Compare::lt},
    {"le", Compare::le}, {"gt", Compare::gt}, {"ge", Compare::ge},
};

bool take_compare(std::string_view part, Instruction& out) {
  for (const auto& [name, compare] : kCompares) {
    if (part != name && part != std::string(name) + "u") continue;
    out.compare = compare;
    out.unordered = part != name;
    return true;
  }
  return false;
}

// What may stand behind a name beside types and spaces, each in blanks. Any other modifier changes
// what an instruction does in a way that nothing here knows.
constexpr std::pair<Op, std::string_view> kModifiers[] = {
    {Op::mov, " to "},  // cvta
    {Op::add, " rn "},
    {Op::sub, " rn "},
    {Op::mul, " rn "},
    {Op::div, " rn "},
    {Op::cvt, " rn rna "},
    {Op::exp2, " ftz "},
    {Op::reciprocal, " approx ftz rn "},
    {Op::root, " approx ftz rn "},
    {Op::load, " v2 v4 nc volatile acquire gpu cg L1::no_allocate L2::128B "},
    {Op::store, " v2 v4 "},
    {Op::add_atomic, " add acq_rel release gpu "},
    {Op::branch, " uni "},
    {Op::load_matrix, " x4 trans "},
    {Op::store_matrix, " x2 x4 trans "},
    {Op::multiply, " m16n8k16 m16n8k8 row col "},
    {Op::copy, " L2::128B "},
    {Op::give, " v4 "},
    {Op::box_load, " multicast::cluster L2::cache_hint "},
    {Op::nothing, " dec inc sync aligned "},  // setmaxnreg
};

bool is_known(Op op, std::string_view modifier) {
  const std::string word = fmt::format(" {} ", modifier);
  for (const auto& [of, words] : kModifiers) {
    if (of == op && words.find(word) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

const OpName& find_op(std::string_view opcode) {
  const OpName* best = nullptr;
  for (const OpName& each : kOps) {
    const bool fits = opcode.starts_with(each.name) &&
                      (opcode.size() == each.name.size() || opcode[each.name.size()] == '.');
    if (fits && (best == nullptr || each.name.size() > best->name.size())) best = &each;
  }
  if (best == nullptr) throw Fault("unknown instruction " + std::string(opcode));
  return *best;
}

void take_modifiers(std::string_view modifiers, Instruction& out) {
  int types = 0;
  for (const std::string_view part : parts_of(modifiers)) {
    if (part.empty()) continue;
    if (const std::optional<Type> type = find_type(part)) {
      if (types == 0) out.type = out.from = *type;
      if (types == 1) out.from = *type;
      ++types;
    } else if (part == "shared") {
      out.space = Space::shared;
    } else if (part == "param") {
      out.space = Space::param;
    } else if (part == "local") {
      out.space = Space::local;
    } else if (out.op == Op::group_multiply && part.starts_with("m64n")) {
      out.columns = std::atoi(std::string(part.substr(4)).c_str());
    } else if (part == "global" || (out.op == Op::setp && take_compare(part, out))) {
      continue;
    } else if (!is_known(out.op, part)) {
      throw Fault("unknown modifier " + std::string(part));
    }
    if (part == "v2" || part == "x2") out.count = 2;
    if (part == "v4" || part == "x4") out.count = 4;
    if (part == "trans") out.transposed = true;
    if (part == "nc") out.constant = true;
    if (part == "multicast::cluster") out.multicast = true;
    if (part == "acquire" || part == "acq_rel") out.acquires = true;
    if (part == "release" || part == "acq_rel") out.releases = true;
  }
  if (out.op == Op::add_atomic && (modifiers.find(".add.") == std::string_view::npos ||
                                   bytes_of(out.type) != 4 || out.type == Type::f32)) {
    throw Fault("another atomic operation than to add 32 bits");
  }
}

}  // namespace autotune::emulator
