// Requests one status after the other, and continues after a failure. The exit status is 0 if all
// answered, 2 for a wrong address or key file, else 1. People count replicas from 1; JSON and
// messages count from 0. A status with missing fields is reported as of another version.
#include <iostream>

#include "replica/tools/commands.h"
#include "replica/tools/observer.h"
#include "wire/printable.h"

namespace cepheus::replica {
namespace {

std::string members_of(const nlohmann::json& config) {
  std::string text;
  for (const auto& member : config.at("members")) {
    text += (text.empty() ? "" : ", ") + std::to_string(member.get<unsigned>() + 1);
  }
  return text.empty() ? "none" : text;
}

void print(const std::string& address, const nlohmann::json& s) {
  const auto& config = s.at("config");
  const unsigned count = s.at("count");
  std::cout << address << "  volume " << wire::printable(s.at("volume").get<std::string>()) << ", "
            << s.at("size").get<std::uint64_t>() << " bytes in blocks of " << s.at("block") << "\n";
  if (count == 0) {
    std::cout << "  not written yet\n";
    return;
  }
  std::cout << "  replica " << s.at("place").get<unsigned>() + 1 << " of " << count << ", epoch "
            << config.at("epoch") << "." << config.at("version")
            << ", replicas then in sync: " << members_of(config) << "\n  " << s.at("marked_chunks")
            << " of " << s.at("chunks") << " chunks marked, "
            << (s.at("has_writer").get<bool>() ? "a writer is connected" : "no writer") << "\n";
  if (!s.contains("sync")) return;
  const auto& sync = s.at("sync");
  if (sync.at("in_sync").get<bool>()) {
    std::cout << "  in sync\n";
    return;
  }
  const double lacks = sync.at("lacking_chunks"), chunks = s.at("chunks");
  std::cout << "  not in sync: lacks " << sync.at("lacking_chunks") << " chunks ("
            << static_cast<int>(100 * lacks / chunks) << " %), copied at "
            << sync.at("copy_bytes_per_second").get<double>() / 1e6 << " MB/s\n";
}

}  // namespace

int show_status(const std::vector<std::string>& addresses, bool as_json) {
  const auto key = VolumeKey::from_environment();
  if (!key) {
    std::cerr << "cepheus-replica: " << key.error().text << "\n";
    return 2;
  }
  int result = 0;
  for (const std::string& address : addresses) {
    auto observer = Observer::connect(address, *key);
    auto status = observer ? observer->status() : tl::unexpected(observer.error());
    if (!status) {
      std::cerr << "cepheus-replica: " << status.error().text << "\n";
      result = std::max(result, status.error().code == wire::ErrorCode::kInvalid ? 2 : 1);
    } else if (as_json) {
      (*status)["address"] = address;
      std::cout << status->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    } else {
      try {
        print(address, *status);
      } catch (const nlohmann::json::exception&) {
        std::cerr << "cepheus-replica: " << address << ": its status is of another version\n";
        result = std::max(result, 1);
      }
    }
  }
  return result;
}

}  // namespace cepheus::replica
