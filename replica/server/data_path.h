// The ways by which writers reach a replica's data past its program: the group's WRITEs, and one connection for reads
// and copies. Both are made anew at each join, and end together.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "replica/rdma/rc_connection.h"

namespace cepheus::replica {

class DataPath {
 public:
  // `maps_file`: the data are pages of a file, which the kernel writes back where they are dirty.
  DataPath(std::string device, std::span<std::uint8_t> data, bool maps_file)
      : device_(std::move(device)), data_(data), maps_file_(maps_file) {}
  ~DataPath() { fence(); }
  DataPath(const DataPath&) = delete;
  DataPath& operator=(const DataPath&) = delete;

  // Opens the device, if it is not open, or gone. Says why it can't. kInvalid: the device changes a
  // mapped file's pages without making them dirty, so that a flush would leave them out.
  wire::Result<void> open();
  // What the writer is to know; the group is registered by it.
  wire::Result<JoinReply> join(const RcName& writer, Multicast multicast);
  // Nothing lands any more when it returns.
  void fence();

  // Calls of progress() are due while there is a group, at short intervals while it is being registered.
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
