#include "autotune/worker/messages.h"

#include <cstdint>
#include <exception>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include "autotune/worker/fields.h"
#include "autotune/worker/well_formed.h"

namespace autotune::worker {
namespace {

using nlohmann::json;

constexpr const char* kKind = "kind";

class Writer {
 public:
  template <class T>
  void operator()(const char* name, T&& field) {
    out_[name] = value(field);
  }
  json take() { return std::move(out_); }

 private:
  static json value(Blob& blob) { return json::binary({blob.bytes.begin(), blob.bytes.end()}); }
  static json value(std::vector<Definition>& definitions) {
    json list = json::array();
    for (const auto& [name, text] : definitions) list.push_back(json::array({name, text}));
    return list;
  }
  template <class T>
  static json value(std::vector<T>& items) {
    json list = json::array();
    for (T& item : items) list.push_back(value(item));
    return list;
  }
  template <class T>
  static json value(std::optional<T>& optional) {
    return optional ? value(*optional) : json(nullptr);
  }
  template <class T>
  static json value(T& field) {
    if constexpr (std::is_enum_v<T>) {
      return static_cast<int>(field);
    } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
      return field;
    } else {
      Writer nested;
      fields(nested, field);
      return nested.take();
    }
  }

  json out_ = json::object();
};

// Strict: every field there, of its own type and range, and nothing else.
class Reader {
 public:
  explicit Reader(const json& in) : in_(in), good_(in.is_object()) {}

  template <class T>
  void operator()(const char* name, T&& field) {
    if (!good_) return;
    const auto found = in_.find(name);
    ++seen_;
    good_ = found != in_.end() && read(*found, field);
  }
  bool complete() const { return good_ && in_.size() == seen_; }
  void skip_kind() { ++seen_; }

 private:
  static bool read(const json& in, Blob& blob) {
    if (!in.is_binary()) return false;
    const auto& bytes = in.get_binary();
    blob.bytes.assign(bytes.begin(), bytes.end());
    return true;
  }
  static bool read(const json& in, std::string& text) {
    if (!in.is_string()) return false;
    text = in.get_ref<const std::string&>();
    return true;
  }
  static bool read(const json& in, bool& flag) {
    if (!in.is_boolean()) return false;
    flag = in.get<bool>();
    return true;
  }
  static bool read(const json& in, double& number) {
    if (!in.is_number_float()) return false;
    number = in.get<double>();
    return true;
  }
  static bool read(const json& in, std::vector<Definition>& definitions) {
    if (!in.is_array()) return false;
    definitions.clear();
    for (const json& pair : in) {
      Definition definition;
      if (!pair.is_array() || pair.size() != 2 || !read(pair[0], definition.first) ||
          !read(pair[1], definition.second)) {
        return false;
      }
      definitions.push_back(std::move(definition));
    }
    return true;
  }
  template <class T>
  static bool read(const json& in, std::vector<T>& items) {
    if (!in.is_array()) return false;
    items.clear();
    for (const json& item : in) {
      if (!read(item, items.emplace_back())) return false;
    }
    return true;
  }
  template <class T>
  static bool read(const json& in, std::optional<T>& optional) {
    if (in.is_null()) {
      optional.reset();
      return true;
    }
    return read(in, optional.emplace());
  }
  template <class T>
  static bool read_integer(const json& in, T& number) {
    if (!in.is_number_integer()) return false;
    if (in.is_number_unsigned()) {
      const auto value = in.get<std::uint64_t>();
      if (!std::in_range<T>(value)) return false;
      number = static_cast<T>(value);
      return true;
    }
    const auto value = in.get<std::int64_t>();
    if (!std::in_range<T>(value)) return false;
    number = static_cast<T>(value);
    return true;
  }
  template <class T>
  static bool read(const json& in, T& field) {
    if constexpr (std::is_enum_v<T>) {
      int index = 0;
      if (!read_integer(in, index) || index < 0 || index >= count_of(T{})) return false;
      field = static_cast<T>(index);
      return true;
    } else if constexpr (std::is_integral_v<T>) {
      return read_integer(in, field);
    } else {
      Reader nested(in);
      fields(nested, field);
      return nested.complete();
    }
  }

  const json& in_;
  bool good_;
  std::size_t seen_ = 0;
};

std::optional<json> parse(const std::string& bytes) {
  if (!well_formed(bytes)) return std::nullopt;
  // The library is told not to throw, yet some of its limits do.
  try {
    json parsed = json::from_cbor(bytes, true, false);
    if (parsed.is_discarded() || !parsed.is_object()) return std::nullopt;
    return parsed;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::string kind_in(const json& message) {
  const auto found = message.find(kKind);
  if (found == message.end() || !found->is_string()) return {};
  return found->get<std::string>();
}

template <class Message>
std::string encode_as(const char* kind, const Message& message) {
  Writer writer;
  writer(kKind, std::string(kind));
  fields(writer, const_cast<Message&>(message));  // a Writer only reads
  std::string bytes;
  json::to_cbor(writer.take(), bytes);
  return bytes;
}

template <class Message>
std::optional<Message> decode_as(const char* kind, const std::string& bytes) {
  const auto parsed = parse(bytes);
  if (!parsed || kind_in(*parsed) != kind) return std::nullopt;
  Message message;
  Reader reader(*parsed);
  reader.skip_kind();
  fields(reader, message);
  if (!reader.complete()) return std::nullopt;
  return message;
}

}  // namespace

std::string kind_of(const std::string& bytes) {
  const auto parsed = parse(bytes);
  return parsed ? kind_in(*parsed) : std::string();
}

std::string encode(const Hello& message) { return encode_as("hello", message); }
std::string encode(const CompileRequest& message) { return encode_as("compile_request", message); }
std::string encode(const CompileReply& message) { return encode_as("compile_reply", message); }
std::string encode(const MeasureRequest& message) { return encode_as("measure_request", message); }
std::string encode(const MeasureReply& message) { return encode_as("measure_reply", message); }
std::string encode(const CompareRequest& message) { return encode_as("compare_request", message); }
std::string encode(const CompareReply& message) { return encode_as("compare_reply", message); }

std::optional<Hello> decode_hello(const std::string& bytes) {
  return decode_as<Hello>("hello", bytes);
}
std::optional<CompileRequest> decode_compile_request(const std::string& bytes) {
  return decode_as<CompileRequest>("compile_request", bytes);
}
std::optional<CompileReply> decode_compile_reply(const std::string& bytes) {
  return decode_as<CompileReply>("compile_reply", bytes);
}
std::optional<MeasureRequest> decode_measure_request(const std::string& bytes) {
  return decode_as<MeasureRequest>("measure_request", bytes);
}
std::optional<MeasureReply> decode_measure_reply(const std::string& bytes) {
  return decode_as<MeasureReply>("measure_reply", bytes);
}
std::optional<CompareRequest> decode_compare_request(const std::string& bytes) {
  return decode_as<CompareRequest>("compare_request", bytes);
}
std::optional<CompareReply> decode_compare_reply(const std::string& bytes) {
  return decode_as<CompareReply>("compare_reply", bytes);
}

}  // namespace autotune::worker
