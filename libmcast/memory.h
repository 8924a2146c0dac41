// Memory that a device may read and write: the caller's for bulk operations, our own for eager
// buffers.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "libmcast/device.h"

namespace cepheus::mcast {

// The caller's memory (mcast_mem_h).
class Memory {
 public:
  // `others`: the access of other members, as ibv_reg_mr's. Memory that is read-only for this
  // process and for others is registered for sending only. The device stays open until the memory
  // is deregistered, which may come after the end of the context.
  static Expected<std::unique_ptr<Memory>> create(std::shared_ptr<const Device> device,
                                                  std::uint64_t fork_generation, void* address,
                                                  std::size_t length, int others);

  bool covers(const void* address, std::size_t length) const;
  // Null if it has no such part.
  void* part(std::size_t offset, std::size_t length) const;
  bool is_writable() const { return writable_; }
  std::uint32_t lkey() const { return region_->lkey; }
  // The key for other members; none if they may not write to it.
  std::optional<std::uint32_t> rkey() const {
    return is_open_ ? std::optional(region_->rkey) : std::nullopt;
  }
  ibv_mr* verbs() const { return region_.get(); }
  const Device& device() const { return *device_; }
  std::uint64_t fork_generation() const { return fork_generation_; }  // of the process it is in

 private:
  Memory(std::shared_ptr<const Device> device, std::uint64_t fork_generation, MrHandle region,
         bool writable, bool is_open)
      : device_(std::move(device)),
        fork_generation_(fork_generation),
        region_(std::move(region)),
        writable_(writable),
        is_open_(is_open) {}

  const std::shared_ptr<const Device> device_;
  const std::uint64_t fork_generation_;
  MrHandle region_;
  bool writable_;
  bool is_open_;
};

// Bytes of eager buffers over all groups of a context.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::size_t limit) : limit_(limit) {}

  // False if that would exceed the limit.
  bool take(std::size_t bytes);
  void give_back(std::size_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }
  std::size_t used() const { return used_.load(std::memory_order_relaxed); }
  std::size_t limit() const { return limit_; }

 private:
  const std::size_t limit_;
  std::atomic<std::size_t> used_{0};
};

// Page-aligned memory of our own, registered; a forked child does not get it, so that the parent's
// pages never move.
class OwnPages {
 public:
  static Expected<std::unique_ptr<OwnPages>> create(const Device& device, std::size_t bytes,
                                                    int access);
  ~OwnPages();

  std::span<std::byte> bytes() const { return bytes_; }
  std::uint32_t lkey() const { return region_->lkey; }

 private:
  explicit OwnPages(std::span<std::byte> bytes) : bytes_(bytes) {}

  const std::span<std::byte> bytes_;
  MrHandle region_;
};

// OwnPages within a budget.
class Slab {
 public:
  // MCAST_ERR_NO_MEMORY: over the budget, or the system's limits.
  static Expected<std::unique_ptr<Slab>> create(const Device& device, MemoryBudget& budget,
                                                std::size_t bytes);
  ~Slab();

  std::byte* data() const { return pages_->bytes().data(); }
  std::uint32_t lkey() const { return pages_->lkey(); }

 private:
  Slab(MemoryBudget& budget, std::size_t bytes) : budget_(budget), bytes_(bytes) {}

  MemoryBudget& budget_;
  const std::size_t bytes_;
  std::unique_ptr<OwnPages> pages_;
};

}  // namespace cepheus::mcast
