// Files in a directory that processes of a benchmark leave for each other.
#pragma once

#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>

namespace cepheus::bench {

using Clock = std::chrono::steady_clock;

inline void require(bool ok, const std::string& what) {
  if (!ok) throw std::runtime_error(what);
}

class Meeting {
 public:
  explicit Meeting(std::filesystem::path directory) : directory_(std::move(directory)) {}
  template <typename T>
  void leave(const std::string& name, const T& value) {
    const std::filesystem::path path = directory_ / name, draft = directory_ / (name + ".new");
    std::ofstream(draft, std::ios::binary)
        .write(reinterpret_cast<const char*>(&value), sizeof value);
    std::filesystem::rename(draft, path);
  }
  bool has(const std::string& name) const { return std::filesystem::exists(directory_ / name); }
  // While it waits, `meanwhile` runs again and again.
  template <typename T, typename F>
  T find(const std::string& name, F meanwhile) {
    const auto limit = Clock::now() + std::chrono::seconds(60);
    while (!has(name)) {
      require(Clock::now() < limit, "nobody left " + name);
      meanwhile();
    }
    T value{};
    std::ifstream(directory_ / name, std::ios::binary)
        .read(reinterpret_cast<char*>(&value), sizeof value);
    return value;
  }

 private:
  std::filesystem::path directory_;
};

}  // namespace cepheus::bench
