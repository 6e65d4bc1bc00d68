#include "autotune/io/yaml_node.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <exception>
#include <sstream>
#include <utility>

namespace autotune::io {
namespace {

// Leaves the parser from inside a callback; caught in parse_yaml.
struct Refusal {
  int line;
  std::string message;
};

int line_of(const YAML::Mark& mark) { return mark.line + 1; }

// yaml-cpp's own tree keeps duplicate keys and expands aliases, hence its events and our tree.
class TreeBuilder : public YAML::EventHandler {
 public:
  YamlNode take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(make(YamlNode::Kind::null, mark, "", anchor));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw Refusal{line_of(mark), "aliases (*name) are not accepted; write the value out"};
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    YamlNode node = make(YamlNode::Kind::scalar, mark, tag, anchor);
    node.quoted = tag == "!";
    node.text = value;
    add(std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(make(YamlNode::Kind::sequence, mark, tag, anchor));
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(make(YamlNode::Kind::map, mark, tag, anchor));
  }
  void OnMapEnd() override {
    check_duplicates(open_.back());
    close();
  }

 private:
  YamlNode make(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag,
                YAML::anchor_t anchor) {
    YamlNode node;
    node.kind = kind;
    node.line = line_of(mark);
    if (anchor != 0) {
      throw Refusal{node.line, "anchors (&name) are not accepted; write the value out"};
    }
    // "?" is what yaml-cpp calls a plain node without a tag, "!" a quoted one.
    if (!tag.empty() && tag != "?" && tag != "!") {
      throw Refusal{node.line, "tags (" + in_quotes(tag) + ") are not accepted"};
    }
    if (++count_ > kMaxYamlNodes) {
      throw Refusal{node.line, fmt::format("more than {} values", kMaxYamlNodes)};
    }
    return node;
  }

  void open(YamlNode node) {
    if (open_.size() >= kMaxYamlDepth) {
      throw Refusal{node.line, fmt::format("nested deeper than {} levels", kMaxYamlDepth)};
    }
    open_.push_back(std::move(node));
  }

  void close() {
    YamlNode node = std::move(open_.back());
    open_.pop_back();
    add(std::move(node));
  }

  void add(YamlNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    YamlNode& parent = open_.back();
    if (parent.kind == YamlNode::Kind::map && parent.keys.size() == parent.items.size()) {
      if (node.kind != YamlNode::Kind::scalar) {
        throw Refusal{node.line, "a key must be plain text"};
      }
      parent.keys.push_back(std::move(node));
    } else {
      // yaml-cpp places a value that is not there at whatever follows it.
      const bool absent = node.kind == YamlNode::Kind::null && parent.kind == YamlNode::Kind::map;
      if (absent) node.line = parent.keys.back().line;
      parent.items.push_back(std::move(node));
    }
  }

  static void check_duplicates(const YamlNode& map) {
    std::vector<const YamlNode*> keys;
    for (const YamlNode& key : map.keys) keys.push_back(&key);
    std::stable_sort(keys.begin(), keys.end(),
                     [](const YamlNode* a, const YamlNode* b) { return a->text < b->text; });
    const auto twice =
        std::adjacent_find(keys.begin(), keys.end(),
                           [](const YamlNode* a, const YamlNode* b) { return a->text == b->text; });
    if (twice != keys.end()) {
      throw Refusal{(*(twice + 1))->line,
                    fmt::format("duplicate key {}, first on line {}; keep one of them",
                                in_quotes((*twice)->text), (*twice)->line)};
    }
  }

  YamlNode root_;
  std::vector<YamlNode> open_;
  int count_ = 0;
};

// What the scanner would take silently (it reads byte 4 as the end of the file), or slowly.
void check_bytes(std::string_view text) {
  int line = 1;
  std::size_t line_start = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == '\n') {
      ++line;
      line_start = i + 1;
    } else if ((byte < 0x20 && byte != '\t' && byte != '\r') || byte == 0x7f) {
      throw Refusal{line, fmt::format("control character 0x{:02x}; expected text in UTF-8", byte)};
    } else if (i - line_start >= kMaxYamlLine) {
      throw Refusal{line, fmt::format("line longer than {} bytes", kMaxYamlLine)};
    }
  }
}

YamlNode parse(std::string_view text) {
  check_bytes(text);
  std::istringstream stream{std::string(text)};
  YAML::Parser parser(stream);
  TreeBuilder builder;
  if (!parser.HandleNextDocument(builder)) throw Refusal{1, "the file is empty"};
  YamlNode root = builder.take();
  if (TreeBuilder second; parser.HandleNextDocument(second)) {
    throw Refusal{second.take().line, "a second document; expected one"};
  }
  return root;
}

}  // namespace

Error error_at(const std::string& origin, int line, std::string_view message) {
  return {ErrorCode::bad_input, fmt::format("{}:{}: {}", origin, line, message)};
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  if (text.size() <= kLongest) return fmt::format("'{}'", text);
  return fmt::format("'{}...'", text.substr(0, kLongest));
}

Expected<YamlNode> parse_yaml(std::string_view text, const std::string& origin) {
  try {
    return parse(text);
  } catch (const Refusal& refusal) {
    return tl::unexpected(error_at(origin, refusal.line, refusal.message));
  } catch (const YAML::Exception& error) {
    const int line = error.mark.is_null() ? 1 : line_of(error.mark);
    return tl::unexpected(error_at(origin, line, "not valid YAML: " + error.msg));
  } catch (const std::exception& error) {
    return tl::unexpected(error_at(origin, 1, std::string("cannot be read: ") + error.what()));
  }
}

}  // namespace autotune::io
