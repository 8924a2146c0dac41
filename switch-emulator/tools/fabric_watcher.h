// The views of a fabric that several readers wait for: the fabric is asked twice a second while
// anybody does, however many.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "switch-emulator/tools/view_source.h"

namespace cepheus::tools {

class FabricWatcher {
 public:
  // `control`: what the views say of it.
  FabricWatcher(std::string fabric_socket, bool control);
  ~FabricWatcher();
  FabricWatcher(const FabricWatcher&) = delete;
  FabricWatcher& operator=(const FabricWatcher&) = delete;

  struct View {
    std::string json;  // of fabric_view(), with "control"; or {"error"}
    std::uint64_t number = 0;
  };
  // The first view behind number `seen`; 0: the next one. Empty: it has ended.
  std::optional<View> next(std::uint64_t seen);
  void end();

 private:
  void run();
  std::string look();

  const bool control_;
  ViewSource source_;  // run()'s
  std::mutex mutex_;
  std::condition_variable changed_;
  View view_;
  int readers_ = 0;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace cepheus::tools
