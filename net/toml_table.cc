// Before toml++ 3.3 parses a file, is_safe() refuses what leads the parser into undefined
// behaviour. That is: bytes that are not UTF-8, control characters, other characters than ASCII
// outside quotes and comments, three quotes. A byte order mark is allowed.
//
// Errors quote the line as written and give a remedy. read_switch() and strings() report nothing:
// their callers accept other types or know the remedy.
#include "net/toml_table.h"

#include <algorithm>
#include <sstream>

#include "net/nearest_name.h"
#include "net/units.h"
#include "wire/utf8.h"

namespace cepheus::net {
namespace {

std::string as_written(const toml::node& node) {
  std::ostringstream text;
  node.visit([&](const auto& value) {
    if constexpr (!toml::is_table<decltype(value)> && !toml::is_array<decltype(value)>) {
      text << value;
    } else {
      text << (node.is_table() ? "{...}" : "[...]");
    }
  });
  return text.str();
}

std::string assignment(std::string_view key, const toml::node& node) {
  return std::string(key) + " = " + as_written(node);
}

std::string joined(std::initializer_list<std::string_view> names) {
  std::string all;
  for (const std::string_view name : names) all += (all.empty() ? "" : ", ") + std::string(name);
  return all;
}

// Skips quotes and comments. Quoted text ends on its line.
class Place {
 public:
  bool is_bare() const { return quote_ == 0 && !in_comment_; }
  void pass(char32_t c) {
    if (c == '\n') {
      *this = {};
    } else if (is_bare()) {
      in_comment_ = c == '#';
      if (c == '"' || c == '\'') quote_ = c;
    } else if (is_escaped_) {
      is_escaped_ = false;
    } else if (c == quote_) {
      quote_ = 0;
    } else {
      is_escaped_ = quote_ == '"' && c == '\\';
    }
  }

 private:
  char32_t quote_ = 0;
  bool in_comment_ = false, is_escaped_ = false;
};

// The reason why toml++ 3.3 must not parse the text from here on, or null: some texts lead the
// parser into undefined behaviour instead of an error.
const char* find_flaw(std::string_view text, const wire::Character& next, bool is_bare) {
  if (next.bytes == 0) return "a byte that is not UTF-8; save the file as text in UTF-8";
  const bool is_space = next.code == '\t' || next.code == '\n' || next.code == '\r';
  if ((next.code < 0x20 && !is_space) || next.code == 0x7F) return "a control character; delete it";
  if (!is_bare) return nullptr;
  if (next.code > 0x7F) return "a character outside quotes and comments is not ASCII; delete it";
  if (text.starts_with("\"\"\"") || text.starts_with("\'\'\'")) {
    return "three quotes; write text in one line, in one pair of quotes";
  }
  return nullptr;
}

bool is_safe(std::string_view text, TomlErrors& errors) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // a byte order mark
  Place place;
  std::size_t line = 1;
  while (!text.empty()) {
    const wire::Character next = wire::first_character(text);
    if (const char* flaw = find_flaw(text, next, place.is_bare())) {
      errors.add(line, flaw);
      return false;
    }
    place.pass(next.code);
    line += next.code == '\n';
    text.remove_prefix(next.bytes);
  }
  return true;
}

}  // namespace

std::optional<toml::table> parse_toml(const std::string& text, TomlErrors& errors) {
  if (!is_safe(text, errors)) return std::nullopt;
  toml::parse_result parsed = toml::parse(text);
  if (parsed) return std::move(parsed).table();
  errors.add(parsed.error().source().begin.line, std::string(parsed.error().description()));
  return std::nullopt;
}

TomlTable::TomlTable(TomlErrors& errors, const toml::table& table, std::string label,
                     std::initializer_list<std::string_view> known)
    : errors_(errors), table_(table), label_(std::move(label)) {
  // toml++ sorts keys by name; an error should name the first one in the file.
  const toml::key* unknown = nullptr;
  for (const auto& [key, node] : table_) {
    if (std::ranges::find(known, key.str()) != known.end()) continue;
    if (unknown == nullptr || key.source().begin < unknown->source().begin) unknown = &key;
  }
  if (unknown != nullptr) {
    errors_.add(unknown->source().begin.line,
                "unknown key '" + std::string(unknown->str()) + "' in " + label_ +
                    did_you_mean(unknown->str(), std::span(known.begin(), known.size())) +
                    "; known: " + joined(known));
  }
}

void TomlTable::error(std::string_view key, const std::string& text) const {
  const toml::node* node = table_.get(key);
  errors_.add(node != nullptr ? node->source().begin.line : line(), text + ", in " + label_);
}

bool TomlTable::read(std::string_view key, std::string& out) const {
  const toml::node* node = table_.get(key);
  if (node == nullptr) return false;
  const toml::value<std::string>* text = node->as_string();
  if (text == nullptr) {
    error(key, assignment(key, *node) + " is not a text; write " + std::string(key) + " = \"...\"");
    return false;
  }
  out = text->get();
  return true;
}

template <typename T, typename Parse>
bool TomlTable::read_quantity(std::string_view key, Parse parse, std::string_view example,
                              std::string_view units, T& out) const {
  const toml::node* node = table_.get(key);
  if (node == nullptr) return false;
  const std::string advice = "; write " + std::string(key) + " = \"" + std::string(example) +
                             "\" (units: " + std::string(units) + ")";
  const toml::value<std::string>* text = node->as_string();
  if (text == nullptr) {
    error(key, assignment(key, *node) +
                   (node->is_number() ? " has no unit" : " is not a quantity") + advice);
    return false;
  }
  const auto value = parse(text->get());
  if (!value) {
    error(key, assignment(key, *node) + " is not a number with a unit" + advice);
    return false;
  }
  out = *value;
  return true;
}

bool TomlTable::read(std::string_view key, wire::BitRate& out) const {
  return read_quantity(key, parse_rate, "10Gbps", "bps, Kbps, Mbps, Gbps, Tbps; or \"unlimited\"",
                       out);
}

bool TomlTable::read(std::string_view key, wire::Duration& out) const {
  return read_quantity(key, parse_duration, "2us", kDurationUnits, out);
}

bool TomlTable::read_switch(std::string_view key, bool& out) const {
  const toml::node* node = table_.get(key);
  const toml::value<bool>* value = node == nullptr ? nullptr : node->as_boolean();
  if (value == nullptr) return false;
  out = value->get();
  return true;
}

bool TomlTable::read_bytes(std::string_view key, wire::Bytes& out) const {
  return read_quantity(key, parse_bytes, "4MiB", kBytesUnits, out);
}

template <typename T>
bool TomlTable::read_address(std::string_view key, const char* kind, const char* example,
                             T& out) const {
  std::string text;
  if (!read(key, text)) return false;
  const auto address = T::parse(text);
  if (address) {
    out = *address;
  } else {
    error(key, std::string(key) + " = \"" + text + "\" is not an IPv4 " + kind + "; write " +
                   std::string(key) + " = \"" + example + "\"");
  }
  return address.has_value();
}

bool TomlTable::read(std::string_view key, wire::Ipv4& out) const {
  return read_address(key, "address", "10.0.0.1", out);
}

bool TomlTable::read(std::string_view key, wire::Ipv4Prefix& out) const {
  return read_address(key, "prefix", "198.18.0.0/15", out);
}

bool TomlTable::read_probability(std::string_view key, double& out) const {
  const toml::node* node = table_.get(key);
  if (node == nullptr) return false;
  const std::optional<double> value = node->is_number() ? node->value<double>() : std::nullopt;
  if (!value || !(*value >= 0 && *value <= 1)) {
    error(key, assignment(key, *node) + " is not a probability; write a number from 0.0 to 1.0");
    return false;
  }
  out = *value;
  return true;
}

bool TomlTable::read_integer(std::string_view key, std::int64_t lowest, std::int64_t highest,
                             std::int64_t& out) const {
  const toml::node* node = table_.get(key);
  if (node == nullptr) return false;
  const toml::value<std::int64_t>* value = node->as_integer();
  if (value == nullptr || value->get() < lowest || value->get() > highest) {
    error(key, assignment(key, *node) + " is out of range; write a whole number from " +
                   std::to_string(lowest) + " to " + std::to_string(highest));
    return false;
  }
  out = value->get();
  return true;
}

const toml::table* TomlTable::table(std::string_view key) const {
  const toml::node* node = table_.get(key);
  if (node == nullptr) return nullptr;
  if (!node->is_table()) {
    error(key,
          assignment(key, *node) + " is not a table; write " + std::string(key) + " = { ... }");
  }
  return node->as_table();
}

std::vector<const toml::table*> TomlTable::tables(std::string_view key) const {
  std::vector<const toml::table*> found;
  const toml::node* node = table_.get(key);
  if (node == nullptr) return found;
  const std::string advice = "; write [[" + std::string(key) + "]], in two brackets, for each one";
  if (!node->is_array()) {
    error(key, std::string(key) + " is not a list of tables" + advice);
    return found;
  }
  for (const toml::node& element : *node->as_array()) {
    if (!element.is_table()) {
      error(key, assignment(key, element) + " is not a table" + advice);
      return {};
    }
    found.push_back(element.as_table());
  }
  return found;
}

std::optional<std::vector<std::string>> TomlTable::strings(std::string_view key) const {
  const toml::node* node = table_.get(key);
  const toml::array* array = node != nullptr ? node->as_array() : nullptr;
  if (array == nullptr) return std::nullopt;
  std::vector<std::string> texts;
  for (const toml::node& element : *array) {
    const toml::value<std::string>* text = element.as_string();
    if (text == nullptr) return std::nullopt;
    texts.push_back(text->get());
  }
  return texts;
}

}  // namespace cepheus::net
