// One pass over the cells finds the widths, a second one writes. Each UTF-8 character counts as one
// column, so wide ones shift their row. Colour codes have no width, and spaces at the end of a line
// are removed.
#include "switch-emulator/live/status/text_table.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace cepheus::live {
// UTF-8's continuation bytes have no width (the tree's branches are not ASCII).
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string decimal(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

std::string styled(const std::string& text, Style style, bool colour) {
  constexpr std::array kCodes{"", "\033[1m", "\033[2m", "\033[32m", "\033[31m"};
  static_assert(kCodes.size() == static_cast<std::size_t>(Style::kAlarm) + 1);
  const std::string shown = printable(text);
  if (!colour || shown.empty() || style == Style::kPlain) return shown;
  return kCodes[static_cast<std::size_t>(style)] + shown + "\033[0m";
}

std::string hex24(std::uint32_t value) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%06x", value);
  return text;
}

std::string count_of(std::uint64_t n, const char* thing) {
  return std::to_string(n) + " " + thing + (n == 1 ? "" : "s");
}

std::string TextTable::to_text(bool colour) const {
  std::vector<std::size_t> widths;
  std::vector<Cell> titles;
  for (const Column& column : columns_) {
    titles.emplace_back(column.title, Style::kTitle);
    widths.push_back(width(column.title));
  }
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], width(row[i].text));
    }
  }
  std::string out;
  const auto put = [&](const std::vector<Cell>& row) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - width(row[i].text), ' ');
      const std::string text = styled(row[i].text, row[i].style, colour);
      out += "  " + (columns_[i].right ? padding + text : text + padding);
    }
    out.erase(out.find_last_not_of(' ') + 1);
    out += "\n";
  };
  put(titles);
  for (const auto& row : rows_) put(row);
  return out;
}

}  // namespace cepheus::live
