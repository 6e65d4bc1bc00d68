#include "test/emulator/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

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

// Names that begin an opcode; the longest that fits counts.
struct OpName {
  std::string_view name;
  Op op;
};
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
    {"cp.async.bulk.tensor.2d.global.shared::cta.bulk_group", Op::box_store},
    {"cp.async.bulk.commit_group", Op::box_commit},
    {"cp.async.bulk.wait_group.read", Op::box_wait},
    {"fence.proxy.async.shared::cta", Op::proxy_fence},
    {"fence.mbarrier_init.release.cluster", Op::barrier_fence},
    {"prefetch.tensormap", Op::nothing},
    {"griddepcontrol.wait", Op::launch_wait},
    {"griddepcontrol.launch_dependents", Op::nothing},
    {"setmaxnreg", Op::nothing},
};

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
    {Op::store_matrix, " x2 x4 "},
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

// What stands behind an instruction's name.
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
    if (part == "multicast::cluster") out.multicast = true;
    if (part == "acquire" || part == "acq_rel") out.acquires = true;
    if (part == "release" || part == "acq_rel") out.releases = true;
  }
  if (out.op == Op::add_atomic && (modifiers.find(".add.") == std::string_view::npos ||
                                   bytes_of(out.type) != 4 || out.type == Type::f32)) {
    throw Fault("another atomic operation than to add 32 bits");
  }
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {
    program_.lines.emplace_back();
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      program_.lines.emplace_back(text.substr(at, end - at));
      at = end + 1;
    }
  }

  Program parse() {
    std::string statement;
    scopes_.emplace_back();
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '/' && text_.substr(at_).starts_with("//")) {
        at_ = std::min(text_.find('\n', at_), text_.size()) - 1;
      } else if (c == '\n' && statement.starts_with('.') && is_directive(statement)) {
        statement.clear();
        ++line_;
      } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
        line_ += c == '\n';
        if (!statement.empty() && statement.back() != ' ') statement += ' ';
      } else if (c == '{' && (statement.empty() || statement.starts_with(".visible"))) {
        statement.clear();
        scopes_.emplace_back();
      } else if (c == '}' && statement.empty()) {
        scopes_.pop_back();
      } else if (c == ';') {
        take_statement(statement);
        statement.clear();
      } else if (c == ':' && is_label(statement)) {
        const std::string name = statement;
        scopes_.back().labels->emplace(name, static_cast<std::int32_t>(program_.code.size()));
        statement.clear();
      } else {
        statement += c;
      }
    }
    for (const auto& [instruction, where] : branches_) {
      program_.code[instruction].target = where.target();
    }
    if (program_.code.empty()) throw Fault("no instructions");
    return std::move(program_);
  }

 private:
  using Labels = std::map<std::string, std::int32_t, std::less<>>;
  struct Scope {
    std::map<std::string, std::int32_t, std::less<>> registers;
    std::shared_ptr<Labels> labels = std::make_shared<Labels>();
  };
  struct Jump {
    std::string name;
    std::vector<std::shared_ptr<Labels>> inside;  // outermost first
    std::int32_t target() const {
      for (auto scope = inside.rbegin(); scope != inside.rend(); ++scope) {
        if (const auto found = (*scope)->find(name); found != (*scope)->end()) {
          return found->second;
        }
      }
      throw Fault("no label " + name);
    }
  };

  // Directives that end with their line.
  static bool is_directive(std::string_view statement) {
    for (const std::string_view name :
         {".version", ".target", ".address_size", ".maxntid", ".minnctapersm", ".explicitcluster",
          ".reqnctapercluster"}) {
      if (statement.starts_with(name)) return true;
    }
    return false;
  }

  bool is_label(std::string_view statement) const {
    if (text_.substr(at_).starts_with("::") || statement.empty()) return false;
    return std::all_of(statement.begin(), statement.end(), [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$';
    });
  }

  std::int32_t new_slot() { return program_.slots++; }

  std::int32_t constant(std::uint64_t value) {
    const auto [place, added] = program_.constants.try_emplace(value, 0);
    if (added) place->second = new_slot();
    return place->second;
  }

  // ".reg .b32 %r<93>", ".reg .pred p", ".local .align 16 .b8 __local_depot0[64]"
  void take_declaration(const std::string& statement) {
    const std::string name = statement.substr(statement.rfind(' ') + 1);
    if (statement.starts_with(".local")) {
      program_.local_bytes = std::atoi(name.c_str() + name.find('[') + 1);
      scopes_.back().registers[name.substr(0, name.find('['))] = kLocal;
      return;
    }
    if (statement.starts_with(".extern .shared")) {
      scopes_.back().registers[name.substr(0, name.find('['))] = kShared;
      return;
    }
    if (!statement.starts_with(".reg")) return;  // constants that the code has as numbers
    const std::size_t many = name.find('<');
    if (many == std::string::npos) {
      scopes_.back().registers[name] = new_slot();
      return;
    }
    const int count = std::atoi(name.c_str() + many + 1);
    for (int i = 0; i < count; ++i) {
      scopes_.back().registers[name.substr(0, many) + std::to_string(i)] = new_slot();
    }
  }

  std::int32_t slot_of(std::string_view name) {
    if (name == "_") return -1;
    if (name == "%tid.x") return kThreadX;
    if (name == "%ntid.x") return kThreadsX;
    if (name == "%ctaid.x") return kBlockX;
    if (name == "%nctaid.x") return kBlocksX;
    if (name == "%cluster_ctarank") return kClusterRank;
    if (name.ends_with("_param_0")) return kParam;
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      const auto found = scope->registers.find(name);
      if (found != scope->registers.end()) return found->second;
    }
    const std::string text(name);
    if (name.starts_with("0f") || name.starts_with("0F")) {
      return constant(std::strtoull(text.c_str() + 2, nullptr, 16));
    }
    char* end = nullptr;
    const bool negative = name.starts_with('-');
    const std::uint64_t value =
        negative ? static_cast<std::uint64_t>(std::strtoll(text.c_str(), &end, 0))
                 : std::strtoull(text.c_str(), &end, 0);
    if (text.empty() || (*end != '\0' && std::string_view(end) != "U")) {
      throw Fault("unknown operand " + text);
    }
    return constant(value);
  }

  // "%rd4+-16", "smem+128"
  Operand address(std::string_view text) {
    const std::size_t plus = text.find('+');
    Operand operand{slot_of(text.substr(0, plus))};
    if (plus != std::string_view::npos) {
      operand.offset = std::atoi(std::string(text.substr(plus + 1)).c_str());
    }
    return operand;
  }

  void take_statement(const std::string& statement) {
    if (statement.starts_with('.')) return take_declaration(statement);
    Instruction out;
    out.line = line_;
    std::string_view rest = statement;
    if (rest.starts_with('@')) {
      const std::size_t space = rest.find(' ');
      std::string_view guard = rest.substr(1, space - 1);
      out.guard_not = guard.starts_with('!');
      if (out.guard_not) guard.remove_prefix(1);
      out.guard = slot_of(guard);
      rest.remove_prefix(space + 1);
    }
    const std::size_t space = std::min(rest.find(' '), rest.size());
    const std::string_view opcode = rest.substr(0, space);
    rest.remove_prefix(std::min(space + 1, rest.size()));
    try {
      const OpName& name = find_op(opcode);
      out.op = name.op;
      take_modifiers(opcode.substr(name.name.size()), out);
    } catch (const Fault& fault) {
      throw Fault(std::string(fault.what()) + " in line " + std::to_string(line_) + ": " +
                  statement);
    }
    out.unpacks = out.op == Op::mov && rest.starts_with('{');
    if (out.op == Op::branch) {
      Jump jump{std::string(rest), {}};
      while (jump.name.ends_with(' ')) jump.name.pop_back();
      for (const Scope& scope : scopes_) jump.inside.push_back(scope.labels);
      branches_.emplace_back(program_.code.size(), std::move(jump));
      program_.code.push_back(out);
      return;
    }
    out.first = static_cast<std::int32_t>(program_.operands.size());
    std::string word;
    const auto take_word = [&] {
      if (!word.empty()) program_.operands.push_back(address(word));
      word.clear();
    };
    for (const char c : rest) {
      if (std::string_view(" ,[]{}|").find(c) != std::string_view::npos) {
        take_word();
      } else {
        word += c;
      }
    }
    take_word();
    out.operands = static_cast<std::int32_t>(program_.operands.size()) - out.first;
    program_.code.push_back(out);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  Program program_;
  std::vector<Scope> scopes_;
  std::vector<std::pair<std::size_t, Jump>> branches_;
};

}  // namespace

Program parse_ptx(std::string_view text) { return Parser(text).parse(); }

}  // namespace autotune::emulator
