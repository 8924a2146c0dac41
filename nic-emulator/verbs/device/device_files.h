// The files that a kernel would show for the device, served from memory. Programs such as UCX read
// them.
//
//   /dev/infiniband/uverbs_cepheus0                 a character device: stands for /dev/null
//   /sys/class/infiniband/cepheus0/...              read-only text
//   /sys/class/infiniband_verbs/uverbs_cepheus0/... read-only text
//
// Directories exist but can't be listed. Without CEPHEUS_FABRIC none of these files exist.
#pragma once

#include <optional>
#include <string>

namespace cepheus::verbs {

struct DeviceFile {
  enum class Kind { kDirectory, kText, kCharacterDevice };
  Kind kind;
  std::string text;  // kText
};

// Empty for every other path. Fast for those: programs open many files.
std::optional<DeviceFile> find_device_file(const char* path);

}  // namespace cepheus::verbs
