// What a user of a volume knows of it, in a file that outlives the user: which write each block was acknowledged with,
// and which was begun. Whatever happens, a block holds one of these two, and what was seen once stays.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace cepheus::replica::e2e {

class Ledger {
 public:
  // Made of zeros if it is not there. Throws std::system_error.
  Ledger(const std::string& path, std::uint64_t blocks);
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  std::uint64_t next_write() { return ++words_[0]; }
  void begin(std::uint64_t block, std::uint64_t write) { begun(block) = write; }
  void acknowledge(std::uint64_t block) { known(block) = begun(block); }

  // Takes what was read as what is there from now on. What is wrong, if it can't be there.
  std::optional<std::string> see(std::uint64_t block, std::span<const std::uint8_t> content);

  // A block's content: its number and the write's, all over it.
  static void fill(std::uint64_t block, std::uint64_t write, std::span<std::uint8_t> out);

 private:
  std::uint64_t& known(std::uint64_t block) { return words_[1 + 2 * block]; }
  std::uint64_t& begun(std::uint64_t block) { return words_[2 + 2 * block]; }

  std::uint64_t* words_ = nullptr;
  std::size_t size_;
};

}  // namespace cepheus::replica::e2e
