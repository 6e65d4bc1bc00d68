#include "test/emulator/program.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <memory>
#include <utility>

#include "test/emulator/opcodes.h"

namespace autotune::emulator {

namespace {

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
