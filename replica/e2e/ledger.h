// A volume's user keeps this file, which outlives it: each block's last acknowledged write, and the
// write begun after it. A block always holds one of the two, and a value that was read never
// changes back.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace cepheus::replica::e2e {

class Ledger {
 public:
  // Zeros if the file does not exist. Throws std::system_error.
  Ledger(const std::string& path, std::uint64_t blocks);
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  std::uint64_t next_write() { return ++words_[0]; }
  void begin(std::uint64_t block, std::uint64_t write) { begun(block) = write; }
  void acknowledge(std::uint64_t block) { known(block) = begun(block); }

  // Takes the read value as the block's content from now on. Returns the error if it can't be
  // there.
  std::optional<std::string> see(std::uint64_t block, std::span<const std::uint8_t> content);

  // A block's content: repeats its number and the write's.
  static void fill(std::uint64_t block, std::uint64_t write, std::span<std::uint8_t> out);

 private:
  std::uint64_t& known(std::uint64_t block) { return words_[1 + 2 * block]; }
  std::uint64_t& begun(std::uint64_t block) { return words_[2 + 2 * block]; }

  std::uint64_t* words_ = nullptr;
  std::size_t size_;
};

}  // namespace cepheus::replica::e2e
