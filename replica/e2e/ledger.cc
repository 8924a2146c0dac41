#include "replica/e2e/ledger.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "wire/unique_fd.h"

namespace cepheus::replica::e2e {
namespace {

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

std::uint64_t word_at(std::span<const std::uint8_t> bytes, std::size_t index) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes.data() + 8 * index, 8);
  return word;
}

}  // namespace

Ledger::Ledger(const std::string& path, std::uint64_t blocks) : size_(8 * (1 + 2 * blocks)) {
  const wire::UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file.is_open() || ftruncate(file.get(), static_cast<off_t>(size_)) != 0) fail(path);
  void* at = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (at == MAP_FAILED) fail(path);
  words_ = static_cast<std::uint64_t*>(at);
}

Ledger::~Ledger() { munmap(words_, size_); }

void Ledger::fill(std::uint64_t block, std::uint64_t write, std::span<std::uint8_t> out) {
  for (std::size_t i = 0; i + 16 <= out.size(); i += 16) {
    std::memcpy(out.data() + i, &block, 8);
    std::memcpy(out.data() + i + 8, &write, 8);
  }
}

std::optional<std::string> Ledger::see(std::uint64_t block, std::span<const std::uint8_t> content) {
  const std::uint64_t write = word_at(content, 1);
  const std::string name = "block " + std::to_string(block);
  for (std::size_t i = 0; i < content.size() / 16; ++i) {
    const std::uint64_t right = write == 0 ? 0 : block;
    if (word_at(content, 2 * i) == right && word_at(content, 2 * i + 1) == write) continue;
    return name + ", byte " + std::to_string(16 * i) + ": of block " +
           std::to_string(word_at(content, 2 * i)) + ", write " +
           std::to_string(word_at(content, 2 * i + 1)) + "; its first bytes: of block " +
           std::to_string(word_at(content, 0)) + ", write " + std::to_string(write);
  }
  if (write != known(block) && write != begun(block)) {
    return name + " holds write " + std::to_string(write) + "; acknowledged or seen was " +
           std::to_string(known(block)) + ", begun " + std::to_string(begun(block));
  }
  known(block) = begun(block) = write;
  return std::nullopt;
}

}  // namespace cepheus::replica::e2e
