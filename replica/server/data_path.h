// Writers' direct access to a replica's data: the group's WRITEs, and one connection for reads and
// copies. Each join makes both anew, and they end together.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "replica/rdma/rc_connection.h"

namespace cepheus::replica {

class DataPath {
 public:
  // `maps_file`: the data are pages of a file; the kernel writes dirty ones back.
  DataPath(std::string device, std::span<std::uint8_t> data, bool maps_file)
      : device_(std::move(device)), data_(data), maps_file_(maps_file) {}
  ~DataPath() { fence(); }

  // Opens the device, unless it is open and up. kInvalid: the device changes a mapped file's pages
  // without making them dirty, so that a flush would miss them.
  wire::Result<void> open();
  // Returns the reply for the writer, which registers the group.
  wire::Result<JoinReply> join(const RcName& writer, Multicast multicast);
  // No data lands after it returns.
  void fence();

  // progress() must be called while there is a group, at short intervals during registration.
  bool has_group() const { return group_ != nullptr; }
  bool is_registering() const;
  void progress();
  std::string state() const;  // for people

 private:
  const std::string device_;
  const std::span<std::uint8_t> data_;
  const bool maps_file_;
  std::unique_ptr<RdmaPort> port_;
  // Registered once for each port: every group publishes it, and reads and copies use it.
  MemoryHandle memory_;
  mcast_group_h group_ = nullptr;
  std::unique_ptr<RcConnection> connection_;
};

}  // namespace cepheus::replica
