// Three owners: Memory is the caller's, read-only if it can't be written to; OwnPages are mapped
// here, registered, and stay out of forked children; a Slab is OwnPages that count against the
// process's budget of eager buffers (max_eager_memory).
#include "libmcast/memory.h"

#include <sys/mman.h>

#include <cerrno>

namespace cepheus::mcast {

Expected<std::unique_ptr<Memory>> Memory::create(std::shared_ptr<const Device> device,
                                                 std::uint64_t fork_generation, void* address,
                                                 std::size_t length, int others) {
  auto region = device->register_memory(address, length, IBV_ACCESS_LOCAL_WRITE | others);
  const bool writable = region.has_value();
  if (!writable && others == 0 && region.error().status == MCAST_ERR_INVALID) {
    region = device->register_memory(address, length, 0);
  }
  if (!region) return tl::unexpected(region.error());
  return std::unique_ptr<Memory>(
      new Memory(std::move(device), fork_generation, std::move(*region), writable, others != 0));
}

bool Memory::covers(const void* address, std::size_t length) const {
  const auto first = reinterpret_cast<std::uintptr_t>(address);
  const auto base = reinterpret_cast<std::uintptr_t>(region_->addr);
  return first >= base && length <= region_->length && first - base <= region_->length - length;
}

void* Memory::part(std::size_t offset, std::size_t length) const {
  if (offset > region_->length || length > region_->length - offset) return nullptr;
  return static_cast<std::byte*>(region_->addr) + offset;
}

bool MemoryBudget::take(std::size_t bytes) {
  std::size_t used = used_.load(std::memory_order_relaxed);
  do {
    if (used > limit_ || bytes > limit_ - used) return false;
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  return true;
}

Expected<std::unique_ptr<Slab>> Slab::create(const Device& device, MemoryBudget& budget,
                                             std::size_t bytes) {
  if (!budget.take(bytes)) {
    return fail(MCAST_ERR_NO_MEMORY, "buffers of " + std::to_string(bytes) +
                                         " bytes: " + std::to_string(budget.used()) + " of " +
                                         std::to_string(budget.limit()) +
                                         " are in use, free groups, lower reduction_window, or "
                                         "raise max_eager_memory");
  }
  std::unique_ptr<Slab> slab(new Slab(budget, bytes));
  auto pages = OwnPages::create(device, bytes, IBV_ACCESS_LOCAL_WRITE);
  if (!pages) return tl::unexpected(pages.error());
  slab->pages_ = std::move(*pages);
  return slab;
}

Slab::~Slab() {
  pages_.reset();
  budget_.give_back(bytes_);
}

Expected<std::unique_ptr<OwnPages>> OwnPages::create(const Device& device, std::size_t bytes,
                                                     int access) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return fail(MCAST_ERR_NO_MEMORY,
                errno_text(std::to_string(bytes) + " bytes of buffers", errno));
  }
  std::unique_ptr<OwnPages> pages(new OwnPages({static_cast<std::byte*>(data), bytes}));
  madvise(data, bytes, MADV_DONTFORK);
  auto region = device.register_memory(data, bytes, access);
  if (!region) return tl::unexpected(region.error());
  pages->region_ = std::move(*region);
  return pages;
}

OwnPages::~OwnPages() {
  region_.reset();
  munmap(bytes_.data(), bytes_.size());
}

}  // namespace cepheus::mcast
