// docs/topology.md: its example is a topology, and its tables list every key of a file and its
// default.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "net/topology.h"

namespace cepheus::net {
namespace {

struct Row {
  std::string word, usual;  // the table's first two columns, without backquotes
};
struct Page {
  std::string example;                             // the first block of code
  std::map<std::string, std::vector<Row>> tables;  // by the word in the section's title
};

std::string cell(std::istream& line) {
  std::string text;
  std::getline(line, text, '|');
  std::erase(text, '`');
  const auto first = text.find_first_not_of(' '), last = text.find_last_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

Page read_page() {
  std::ifstream file(CEPHEUS_SOURCE_DIR "/docs/topology.md");
  Page page;
  std::string section;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## `[")) {
      const auto first = line.find_first_not_of("[`# ");
      section = line.substr(first, line.find(']') - first);
    } else if (section.empty() && (line.starts_with("    ") || line.empty())) {
      page.example += line + "\n";
    } else if (line.starts_with("| `")) {
      std::istringstream cells(line.substr(1));
      const std::string word = cell(cells);
      page.tables[section].push_back({word, cell(cells)});
    }
  }
  return page;
}

// A file with two switches, where the section holds one more line.
std::string file_with(const std::string& section, const std::string& line) {
  const auto put = [&](const char* name) { return section == name ? line + "\n" : ""; };
  return "[fabric]\n" + put("fabric") + "[link]\nrate = \"10Gbps\"\n" + put("link") +
         "[[switch]]\nname = \"s0\"\n" + put("switch") + "[[switch]]\nname = \"s1\"\n" +
         "[[host]]\nname = \"h0\"\naddress = \"10.0.0.1\"\nswitch = \"s0\"\n" + put("host") +
         "[[trunk]]\nbetween = [\"s0\", \"s1\"]\n" + put("trunk");
}

TEST(TopologyPage, ItsExampleIsATopology) {
  const auto topology = Topology::from_toml(read_page().example);
  ASSERT_TRUE(topology) << topology.error().text;
  EXPECT_EQ(topology->hosts.size(), 2u);
}

TEST(TopologyPage, ItsTablesHaveAllKeysOfAFile) {
  const Page page = read_page();
  ASSERT_EQ(page.tables.size(), 5u);
  for (const auto& [section, rows] : page.tables) {
    const auto refused = Topology::from_toml(file_with(section, "no_such_word = 1"));
    ASSERT_FALSE(refused);
    const std::string& text = refused.error().text;
    std::istringstream known(text.substr(text.find("known: ") + 7));
    std::size_t words = 0;
    for (std::string word; std::getline(known >> std::ws, word, ','); ++words) {
      const auto has = [&](const Row& row) { return row.word == word; };
      EXPECT_TRUE(std::any_of(rows.begin(), rows.end(), has)) << word << " of " << section;
    }
    EXPECT_EQ(words, rows.size()) << section;
  }
}

TEST(TopologyPage, ItsDefaultsAreThose) {
  const auto usual = Topology::from_toml(file_with("", ""));
  ASSERT_TRUE(usual);
  unsigned compared = 0;
  for (const auto& [section, rows] : read_page().tables) {
    for (const Row& row : rows) {
      const bool is_value = row.usual.find_first_of("\"0123456789") == 0 || row.usual == "false";
      if (!is_value) continue;
      const auto written = Topology::from_toml(file_with(section, row.word + " = " + row.usual));
      ASSERT_TRUE(written) << written.error().text;
      EXPECT_EQ(written->to_toml(), usual->to_toml()) << row.word;
      ++compared;
    }
  }
  EXPECT_GT(compared, 30u);
}

}  // namespace
}  // namespace cepheus::net
