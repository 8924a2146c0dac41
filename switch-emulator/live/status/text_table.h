// A table for people: columns as wide as their widest cell, numbers to the right, optional colour.
// Texts may come from anywhere: cells and styled() pass them through printable().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "switch-emulator/live/status/printable.h"

namespace cepheus::live {

enum class Style : std::uint8_t { kPlain, kTitle, kQuiet, kGood, kAlarm };
// `text`, made printable, in ANSI colours or without.
std::string styled(const std::string& text, Style style, bool colour);

// Columns on a terminal.
std::size_t width(const std::string& text);
// With one digit behind the point.
std::string decimal(double value);
std::string hex24(std::uint32_t value);                    // "0x00005f"
std::string count_of(std::uint64_t n, const char* thing);  // "1 packet", "2 packets"

class TextTable {
 public:
  struct Column {
    std::string title;
    bool right = false;  // numbers
  };
  struct Cell {
    Cell(const std::string& t, Style s = Style::kPlain) : text(printable(t)), style(s) {}
    Cell(const char* t, Style s = Style::kPlain) : text(printable(t)), style(s) {}
    Cell(std::uint64_t n, Style s = Style::kPlain) : text(std::to_string(n)), style(s) {}
    std::string text;
    Style style;
  };

  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }
  std::string to_text(bool colour) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace cepheus::live
