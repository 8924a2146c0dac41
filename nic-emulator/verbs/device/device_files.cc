// Two tables have the constant texts. Only the GUIDs and the GID contain the address that the
// fabric assigns, so the first read of one of them attaches the process.
//
// Any other path costs three comparisons. A path must be written as above: extra slashes after the
// device's name are ignored, "." and ".." are not resolved.
#include "nic-emulator/verbs/device/device_files.h"

#include <endian.h>
#include <infiniband/verbs.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "nic-emulator/verbs/device/device.h"

namespace cepheus::verbs {
namespace {

constexpr std::string_view kDevicePath = "/dev/infiniband/uverbs_cepheus0";
constexpr std::string_view kInfiniband = "/sys/class/infiniband/cepheus0";
constexpr std::string_view kVerbs = "/sys/class/infiniband_verbs/uverbs_cepheus0";

struct Text {
  std::string_view name;  // relative to its tree
  std::string_view text;
};
constexpr std::array kInfinibandFiles{
    Text{"board_id", "cepheus\n"},
    Text{"fw_ver", CEPHEUS_VERSION "\n"},
    Text{"hca_type", "cepheus\n"},
    Text{"node_desc", "cepheus\n"},
    Text{"node_type", "1: CA\n"},
    Text{"ports/1/gid_attrs/types/0", "RoCE v2\n"},
    Text{"ports/1/link_layer", "Ethernet\n"},
    Text{"ports/1/phys_state", "5: LinkUp\n"},
    Text{"ports/1/pkeys/0", "0xffff\n"},
    Text{"ports/1/state", "4: ACTIVE\n"},
};
constexpr std::array kVerbsFiles{
    Text{"abi_version", "1\n"},
    Text{"ibdev", "cepheus0\n"},
};

std::string four_groups(std::uint64_t v) {
  std::array<char, 24> out{};
  std::snprintf(out.data(), out.size(), "%04x:%04x:%04x:%04x",
                static_cast<unsigned>(v >> 48 & 0xFFFF), static_cast<unsigned>(v >> 32 & 0xFFFF),
                static_cast<unsigned>(v >> 16 & 0xFFFF), static_cast<unsigned>(v & 0xFFFF));
  return out.data();
}

std::optional<DeviceFile> text(std::string content) {
  return DeviceFile{DeviceFile::Kind::kText, std::move(content)};
}

// Files with the address that the fabric assigned.
std::optional<DeviceFile> identity_file(std::string_view name) {
  const bool is_guid = name == "node_guid" || name == "sys_image_guid";
  if (!is_guid && name != "ports/1/gids/0") return std::nullopt;
  const wire::Ipv4 address = nic_address();
  if (address.is_unset()) return std::nullopt;
  if (is_guid) return text(four_groups(be64toh(guid_of(address))) + "\n");
  const ibv_gid gid = gid_of(address);
  return text(four_groups(be64toh(gid.global.subnet_prefix)) + ":" +
              four_groups(be64toh(gid.global.interface_id)) + "\n");
}

// `path` is the tree's root or lies below it.
template <std::size_t N>
std::optional<DeviceFile> look_up(std::string_view path, std::string_view root,
                                  const std::array<Text, N>& files) {
  std::string_view name = path.substr(root.size());
  if (!name.empty() && name.front() != '/') return std::nullopt;
  while (!name.empty() && name.front() == '/') name.remove_prefix(1);
  while (!name.empty() && name.back() == '/') name.remove_suffix(1);
  if (name.empty()) return DeviceFile{DeviceFile::Kind::kDirectory, {}};
  for (const Text& file : files) {
    if (file.name == name) return text(std::string(file.text));
    if (file.name.size() > name.size() && file.name.substr(0, name.size()) == name &&
        file.name[name.size()] == '/') {
      return DeviceFile{DeviceFile::Kind::kDirectory, {}};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<DeviceFile> find_device_file(const char* path) {
  if (path == nullptr || path[0] != '/') return std::nullopt;
  const std::string_view p(path);
  const bool is_device = p == kDevicePath;
  const bool in_infiniband = p.starts_with(kInfiniband);
  const bool in_verbs = p.starts_with(kVerbs);
  if (!is_device && !in_infiniband && !in_verbs) return std::nullopt;
  const char* fabric = std::getenv("CEPHEUS_FABRIC");
  if (fabric == nullptr || *fabric == '\0') return std::nullopt;

  if (is_device) return DeviceFile{DeviceFile::Kind::kCharacterDevice, {}};
  if (in_verbs) return look_up(p, kVerbs, kVerbsFiles);
  if (auto found = look_up(p, kInfiniband, kInfinibandFiles)) return found;
  if (p.size() <= kInfiniband.size() + 1 || p[kInfiniband.size()] != '/') return std::nullopt;
  return identity_file(p.substr(kInfiniband.size() + 1));
}

}  // namespace cepheus::verbs
