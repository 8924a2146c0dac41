// One replica, live: its engine between connections, the disk and the NIC.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "replica/control/volume_key.h"
#include "replica/engine/replica_engine.h"
#include "replica/server/data_path.h"
#include "replica/server/disk_worker.h"
#include "replica/server/peers.h"
#include "replica/server/record_file.h"
#include "replica/server/volume_file.h"

namespace cepheus::replica {

class ReplicaServer {
 public:
  struct Parts {
    wire::UniqueFd listener;
    RecordFile record;
    VolumeFile file;
    std::string device;
    VolumeKey key;
    // Writers ping and observers send requests: a peer without a message for this long is
    // disconnected.
    wire::Duration idle = std::chrono::seconds(30);
    // Computes a peer's digests, on a thread of its own.
    std::function<void(Digests&, std::span<const std::uint8_t>)> digest = make_digests;
  };
  static wire::Result<std::unique_ptr<ReplicaServer>> start(Parts parts);
  ~ReplicaServer();

  // Until stop(), or until the disk fails: then returns why.
  wire::Result<void> run();
  void stop();  // from a signal handler, too

 private:
  // A writer has at most three requests for each of its 1024 operations, and a few of its own: a
  // write of 4 MiB has up to five chunks, and marks them in three ranges if two are marked already.
  static constexpr std::size_t kMostAtDisk = 4096;

  ReplicaServer(Parts parts, wire::UniqueFd wake);
  void make_engine();
  int save_memory();
  int forget_memory();
  void wait();
  void accept_all();
  bool take_turn(std::uint64_t link, Peer& peer, short revents, wire::Instant now);
  bool serve(std::uint64_t link, Peer& peer);  // false: disconnect
  bool take(std::uint64_t link, Peer& peer, const FrameSocket::Frame& frame);
  std::optional<std::string> refusal(const Peer& peer, const VolumeHello& hello) const;
  void greet(Peer& peer, VolumeHello hello);
  void disconnect(std::uint64_t link);
  void forget(std::uint64_t link);
  void execute(ReplicaActions& actions, const RequestMessage& request);
  template <typename Message>
  Peer* send(std::uint64_t link, const Message& message);
  void finish_jobs(DiskWorker& worker);
  bool begin_digests(std::uint64_t link, Peer& peer, const DigestRequest& request);
  void finish_digests();
  std::string status() const;

  wire::UniqueFd listener_, wake_;
  RecordFile record_file_;
  StoredReplica stored_;  // last state given to the disk
  VolumeFile file_;
  VolumeKey key_;
  const wire::Duration idle_;
  DataPath data_path_;
  std::optional<ReplicaEngine> engine_;
  Peers peers_;
  std::uint64_t writer_link_ = 0;  // of the last ping
  Progress progress_;
  int disk_error_ = 0;
  int wait_error_ = 0;
  std::atomic<bool> stop_requested_{false};
  std::unique_ptr<DiskWorker> record_worker_, flush_worker_, digest_worker_;
};

}  // namespace cepheus::replica
