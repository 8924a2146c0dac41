// A replica's data: a file, mapped into memory that the NIC reads and writes.
//
// The kernel writes it back, and flush() waits for that. All of its blocks are allocated when it is opened: a disk that
// is full later has no way to say so to a NIC.
#pragma once

#include <span>
#include <string>

#include "wire/result.h"
#include "wire/unique_fd.h"

namespace cepheus::replica {

class VolumeFile {
 public:
  // Of zeros, durable when it returns. Refused if there is such a file.
  static wire::Result<void> create(const std::string& path, std::uint64_t size);
  // Refused while another process serves it.
  static wire::Result<VolumeFile> open(const std::string& path, std::uint64_t size);
  VolumeFile(VolumeFile&& other) noexcept
      : file_(std::move(other.file_)), data_(std::exchange(other.data_, {})) {}
  VolumeFile& operator=(VolumeFile&&) = delete;
  ~VolumeFile();

  std::span<std::uint8_t> data() const { return data_; }
  // What is in memory when it begins is on disk when it returns; an errno. On any thread.
  int flush() const;

 private:
  VolumeFile(wire::UniqueFd file, std::span<std::uint8_t> data)
      : file_(std::move(file)), data_(data) {}

  wire::UniqueFd file_;
  std::span<std::uint8_t> data_;
};

}  // namespace cepheus::replica
