// A replica's data: a file, and memory that the NIC reads and writes.
//
// By default the memory is the file's pages: the kernel writes them back, flush() waits for that,
// and they outlive the program. Or it is memory of the program's own, read once, which only flush()
// writes back, past the page cache, for NICs that refuse a mapped file. All of the file's blocks
// are allocated when it is opened: a full disk later could not report its error to a NIC.
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
  // Alignment of size and memory of a direct file.
  static constexpr std::uint64_t kDirectBlock = 4096;

  // Filled with zeros, durable when it returns. Refused if the file exists.
  static wire::Result<void> create(const std::string& path, std::uint64_t size);
  // Refused while another process serves it, and if the file system does not support `cache`.
  static wire::Result<VolumeFile> open(const std::string& path, std::uint64_t size,
                                       Cache cache = Cache::kPage);
  VolumeFile(VolumeFile&& other) noexcept
      : file_(std::move(other.file_)),
        cache_(other.cache_),
        data_(std::exchange(other.data_, {})) {}
  VolumeFile& operator=(VolumeFile&&) = delete;
  ~VolumeFile();

  std::span<std::uint8_t> data() const { return data_; }
  // Whether the memory outlives the program.
  bool outlives_program() const { return cache_ == Cache::kPage; }
  // Writes the memory's content of this moment to disk; an errno. On any thread. `chunks`, of
  // `bytes` each: outside them memory and disk are equal.
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
