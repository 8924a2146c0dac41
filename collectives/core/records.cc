// A record is a line of words: the version, then the shared settings in their order. One with fewer
// than three words is of mode off. Only the first difference is named, with the hosts of both
// sides, at most four of each. Every rank finds the same rank to report it, without a message.
#include "collectives/core/records.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

namespace cepheus::coll {

namespace {

using Words = std::vector<std::string>;

Words words_of(const std::string& record) {
  Words words;
  std::istringstream text(record);
  for (std::string word; text >> word;) words.push_back(word);
  return words;
}

bool is_off(const Words& words) { return words.size() < 3; }

// At most some of them, each once.
std::string hosts_of(const std::vector<RankRecord>& ranks, const std::string& record) {
  constexpr std::size_t kMostNamed = 4;
  std::vector<std::string> hosts;
  for (const RankRecord& each : ranks) {
    if (each.record == record && std::ranges::find(hosts, each.host) == hosts.end())
      hosts.push_back(each.host);
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(hosts.size(), kMostNamed); ++i)
    text += (i == 0 ? "" : ", ") + hosts[i];
  if (hosts.size() > kMostNamed)
    text += " and " + std::to_string(hosts.size() - kMostNamed) + " more";
  return text;
}

// Between the records of two ranks that have one.
std::string difference(const Words& one, const std::string& hosts, const Words& other,
                       const std::string& other_hosts, std::string (*parameter)(const char*)) {
  if (one[0] != other[0])
    return "Cepheus " + one[0] + " on " + hosts + ", and " + other[0] + " on " + other_hosts +
           ": install one version on all hosts";
  const auto shared = shared_settings(Parameters());
  for (std::size_t i = 0; i < shared.size() && i + 1 < std::min(one.size(), other.size()); ++i) {
    const std::string &mine = one[i + 1], &theirs = other[i + 1];
    if (mine == theirs) continue;
    const auto shown = [&](const std::string& value) -> std::string {
      if (shared[i].name == std::string("collectives"))
        return names_of(static_cast<unsigned>(std::strtoul(value.c_str(), nullptr, 10)));
      return i == 0 && value.size() == 1 && value[0] - '0' < 3 ? kModes[value[0] - '0'] : value;
    };
    return parameter(shared[i].name) + " is " + shown(mine) + " on " + hosts + ", and " +
           shown(theirs) + " on " + other_hosts + ": give all ranks the same";
  }
  return "records of " + hosts + " and " + other_hosts + " differ";
}

}  // namespace

std::string record_of(const std::string& version, const Parameters& parameters) {
  std::string text = version;
  for (const SharedSetting& each : shared_settings(parameters))
    text += " " + std::to_string(each.value);
  return text;
}

std::size_t reporting_rank(const std::vector<RankRecord>& ranks, Mode mode) {
  const std::string in_mode = std::to_string(static_cast<int>(mode));
  const auto serves = [&](const RankRecord& each) {
    const Words words = words_of(each.record);
    return !is_off(words) && words[1] == in_mode &&
           std::strtoull(words[2].c_str(), nullptr, 10) <= ranks.size();
  };
  return static_cast<std::size_t>(std::ranges::find_if(ranks, serves) - ranks.begin());
}

std::string difference_between(const std::vector<RankRecord>& ranks, Mode mode,
                               std::string (*parameter)(const char* name)) {
  const std::size_t rank = reporting_rank(ranks, mode);
  if (rank == ranks.size()) return "";
  const std::string& own = ranks[rank].record;
  const auto other =
      std::ranges::find_if(ranks, [&](const RankRecord& each) { return each.record != own; });
  if (other == ranks.end()) return "";
  const std::string others = hosts_of(ranks, other->record);
  return other->record.empty()
             ? "ranks on " + others + " have not loaded Cepheus: install it on all hosts"
             : difference(words_of(own), hosts_of(ranks, own), words_of(other->record), others,
                          parameter);
}

}  // namespace cepheus::coll
