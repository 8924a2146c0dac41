// One table of a TOML file, read key by key. Keeps the first error, with its line and its remedy.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#define TOML_EXCEPTIONS 0
// Some assertions of toml++ fail for text that is not TOML, such as "[:". Its errors report it.
#define TOML_ASSERT(expr) static_assert(true)
#include <toml++/toml.h>

#include "wire/types.h"

namespace cepheus::net {

class TomlErrors {
 public:
  explicit TomlErrors(std::string source_name) : source_name_(std::move(source_name)) {}

  // Later errors are often caused by the first, so only that is kept. Line 0: the file as a whole.
  void add(std::size_t line, const std::string& text) {
    if (first_) return;
    first_ = source_name_ + (line == 0 ? "" : ":" + std::to_string(line)) + ": " + text;
  }
  const std::optional<std::string>& first() const { return first_; }

 private:
  std::string source_name_;
  std::optional<std::string> first_;
};

// The table of a whole file, or nothing and an error.
std::optional<toml::table> parse_toml(const std::string& text, TomlErrors& errors);

class TomlTable {
 public:
  // `label` names the table in errors: "[fabric]", "[[host]]". Keys other than `known` are errors.
  TomlTable(TomlErrors& errors, const toml::table& table, std::string label,
            std::initializer_list<std::string_view> known);

  std::size_t line() const { return table_.source().begin.line; }
  bool has(std::string_view key) const { return table_.contains(key); }
  void error(std::string_view key, const std::string& text) const;

  // Each leaves `out` alone if the key is absent or wrong, and returns true if it set it.
  bool read(std::string_view key, std::string& out) const;
  bool read(std::string_view key, wire::BitRate& out) const;
  bool read(std::string_view key, wire::Duration& out) const;
  bool read(std::string_view key, wire::Ipv4& out) const;
  bool read(std::string_view key, wire::Ipv4Prefix& out) const;
  // A boolean; other values are no error here.
  bool read_switch(std::string_view key, bool& out) const;
  bool read_bytes(std::string_view key, wire::Bytes& out) const;
  bool read_probability(std::string_view key, double& out) const;
  bool read_integer(std::string_view key, std::int64_t lowest, std::int64_t highest,
                    std::int64_t& out) const;
  template <typename T>
  bool read_integer(std::string_view key, std::int64_t lowest, std::int64_t highest, T& out) const {
    std::int64_t wide = 0;
    if (!read_integer(key, lowest, highest, wide)) return false;
    out = static_cast<T>(wide);
    return true;
  }
  // One of `words`.
  template <typename T>
  bool read_choice(std::string_view key,
                   std::initializer_list<std::pair<std::string_view, T>> words, T& out) const {
    std::string word;
    if (!read(key, word)) return false;
    std::string all;
    for (const auto& [name, value] : words) {
      if (name == word) {
        out = value;
        return true;
      }
      all += (all.empty() ? "\"" : " or \"") + std::string(name) + "\"";
    }
    error(key, std::string(key) + " = \"" + word + "\" is unknown; write " + all);
    return false;
  }

  // A table behind a key, or null.
  const toml::table* table(std::string_view key) const;
  // The tables of [[key]]; empty if there is none.
  std::vector<const toml::table*> tables(std::string_view key) const;
  std::optional<std::vector<std::string>> strings(std::string_view key) const;

 private:
  template <typename T, typename Parse>
  bool read_quantity(std::string_view key, Parse parse, std::string_view example,
                     std::string_view units, T& out) const;
  template <typename T>
  bool read_address(std::string_view key, const char* kind, const char* example, T& out) const;

  TomlErrors& errors_;
  const toml::table& table_;
  std::string label_;
};

}  // namespace cepheus::net
