// A replica's data: a file, and memory that the NIC reads and writes.
//
// By default the memory is the file's pages: the kernel writes them back, flush() waits for that,
// and they outlive the program. Or it is memory of the program's own, read once, which only flush()
// writes back, past the page cache: what a NIC that refuses a mapped file needs. All of the file's
// blocks are allocated when it is opened: a disk that is full later has no way to say so to a NIC.
#pragma once

#include <span>
#include <string>

#include "replica/engine/chunk_bitmap.h"
#include "wire/result.h"
#include "wire/unique_fd.h"

namespace cepheus::replica {

class VolumeFile {
 public:
  enum class Cache { kPage, kDirect };
  // What size and memory of a direct one are multiples of.
  static constexpr std::uint64_t kDirectBlock = 4096;

  // Of zeros, durable when it returns. Refused if there is such a file.
  static wire::Result<void> create(const std::string& path, std::uint64_t size);
  // Refused while another process serves it, and if the file system can't do what `cache` asks for.
  static wire::Result<VolumeFile> open(const std::string& path, std::uint64_t size,
                                       Cache cache = Cache::kPage);
  VolumeFile(VolumeFile&& other) noexcept
      : file_(std::move(other.file_)),
        cache_(other.cache_),
        data_(std::exchange(other.data_, {})) {}
  VolumeFile& operator=(VolumeFile&&) = delete;
  ~VolumeFile();

  std::span<std::uint8_t> data() const { return data_; }
  // What is in memory outlives the program.
  bool outlives_program() const { return cache_ == Cache::kPage; }
  // What is in memory when it begins is on disk when it returns; an errno. On any thread. `chunks`,
  // of `bytes` each: outside them memory and disk are alike.
  int flush(const ChunkBitmap& chunks, std::uint32_t bytes) const;

 private:
  VolumeFile(wire::UniqueFd file, Cache cache, std::span<std::uint8_t> data)
      : file_(std::move(file)), cache_(cache), data_(data) {}
  int write_back(const ChunkBitmap& chunks, std::uint32_t bytes) const;

  wire::UniqueFd file_;
  Cache cache_;
  std::span<std::uint8_t> data_;
};

}  // namespace cepheus::replica
