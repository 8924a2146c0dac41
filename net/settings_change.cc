// Two topologies are written as files and compared line by line in sections, so a new key needs no
// code here. Sections are matched by their place. A section with another title ends the comparison,
// because ports are numbered by the file's order. What is taken is the difference to
// with_settings(), the rest needs a restart.
#include "net/settings_change.h"

#include <map>
#include <sstream>

namespace cepheus::net {
namespace {

// A table of the topology's file: its title, and its lines by their keys.
struct Section {
  std::string title;  // "switch s0", "trunk [\"s0\", \"s1\"]"; empty: [fabric]
  std::map<std::string, std::string> lines;
};

std::string unquoted(const std::string& text) {
  const bool is_quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
  return is_quoted ? text.substr(1, text.size() - 2) : text;
}

// Compares the texts of both files, so that every setting is compared and has its name in the file.
std::vector<Section> sections_of(const Topology& topology) {
  std::vector<Section> sections;
  std::istringstream text(topology.to_toml());
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("[[")) {
      sections.push_back({line.substr(2, line.find(']') - 2), {}});
    } else if (line.starts_with('[')) {
      sections.push_back({});
    } else if (const auto equals = line.find(" = "); equals != std::string::npos) {
      const std::string key = line.substr(0, equals);
      if (key == "name" || key == "between") {
        sections.back().title += " " + unquoted(line.substr(equals + 3));
      } else {
        sections.back().lines[key] = line;
      }
    }
  }
  return sections;
}

std::vector<std::string> differing_lines(const Section& before, const Section& after) {
  const std::string of = before.title.empty() ? "" : before.title + ": ";
  std::vector<std::string> texts;
  for (const auto& [key, line] : after.lines) {
    const auto found = before.lines.find(key);
    if (found == before.lines.end() || found->second != line) texts.push_back(of + line);
  }
  for (const auto& [key, line] : before.lines) {
    if (!after.lines.contains(key)) texts.push_back(of + key + " is no longer set");
  }
  return texts;
}

std::vector<std::string> differences(const Topology& before, const Topology& after) {
  const std::vector<Section> old_sections = sections_of(before), sections = sections_of(after);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < std::max(old_sections.size(), sections.size()); ++i) {
    if (i >= sections.size()) {
      texts.push_back(old_sections[i].title + " is removed");
    } else if (i >= old_sections.size()) {
      texts.push_back(sections[i].title + " is new");
    } else if (sections[i].title != old_sections[i].title) {
      // Ports are numbered in the file's order, so a new entry moves all later ones.
      texts.push_back(sections[i].title + " is where " + old_sections[i].title + " was");
      break;
    } else {
      for (std::string& text : differing_lines(old_sections[i], sections[i])) {
        texts.push_back(std::move(text));
      }
    }
  }
  return texts;
}

}  // namespace

Topology with_settings(Topology running, const Topology& next) {
  running.users = next.users;
  for (std::size_t s = 0; s < running.switches.size(); ++s) {
    running.switches[s].config.take_settings(next.switches[s].config);
  }
  return running;
}

SettingsChange compare(const Topology& running, const Topology& next) {
  if (running.switches.size() != next.switches.size()) return {{}, differences(running, next)};
  const Topology changed = with_settings(running, next);
  return {differences(running, changed), differences(changed, next)};
}

}  // namespace cepheus::net
