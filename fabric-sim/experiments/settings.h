// The settings of an experiment's fabrics that differ from the shipped defaults.
#pragma once

#include <iosfwd>
#include <set>
#include <string>

#include "net/topology.h"
#include "nic-emulator/engine/nic.h"

namespace cepheus::sim {

// In the words of the topology file and of NicConfig, without names and places.
std::set<std::string> unusual_settings(const net::Topology& topology, const rnic::NicConfig& nic);

// Collects those of all testbeds that are made while it exists; one at a time.
class SettingsLog {
 public:
  SettingsLog();
  ~SettingsLog();
  SettingsLog(const SettingsLog&) = delete;
  SettingsLog& operator=(const SettingsLog&) = delete;

  static void note(const net::Topology& topology, const rnic::NicConfig& nic);
  // A title and a line for each setting, below an empty line; nothing if there are none.
  void write(std::ostream& out) const;

 private:
  std::set<std::string> settings_;
};

}  // namespace cepheus::sim
