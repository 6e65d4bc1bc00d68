// Values that several JSON documents share. Only the json_*.cc files include this.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "autotune/io/json.h"

namespace autotune::io {

using Json = nlohmann::ordered_json;

Json problem_json(const Problem& problem);
Json or_null(const std::string& text);  // null where empty
Json or_null(double value);             // null where 0: not known
Json or_null(std::int64_t value);       // likewise
Json or_null(const std::optional<double>& value);
// {"device": ..., "max_sms": ..., "max_smem": ...}, with which a document begins.
Json device_json(const std::string& device, const CapsJson& caps);
// An array of each item's json_of().
template <class T>
Json array_of(const std::vector<T>& items, Json (*json_of_item)(const T&)) {
  Json array = Json::array();
  for (const T& item : items) array.push_back(json_of_item(item));
  return array;
}

// {"schema": 1, the members of `body`} as indented text. Bytes that are not UTF-8 (a compiler's
// log may have them) are replaced.
std::string document(const Json& body);

}  // namespace autotune::io
