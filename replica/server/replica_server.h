// One replica, live: its engine between connections, the disk and the NIC.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "replica/control/frame_socket.h"
#include "replica/control/volume_key.h"
#include "replica/engine/replica_engine.h"
#include "replica/server/data_path.h"
#include "replica/server/digest.h"
#include "replica/server/disk_worker.h"
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
    // A writer pings, an observer asks: who says nothing for so long has gone.
    wire::Duration idle = std::chrono::seconds(30);
    // Makes what a peer asked for, on a thread of its own.
    std::function<void(Digests&, std::span<const std::uint8_t>)> digest = make_digests;
  };
  static wire::Result<std::unique_ptr<ReplicaServer>> start(Parts parts);
  ~ReplicaServer();

  // Until stop(), or until the disk fails: then why.
  wire::Result<void> run();
  void stop();  // from a signal handler, too

 private:
  static constexpr std::size_t kMostPeers = 64;

  struct Peer {
    FrameSocket socket;
    Nonce nonce;
    wire::Instant until;  // to have said hello, or anything
    std::optional<VolumeHello> hello{};
    bool has_more = false;      // requests that have come, for the next turn
    bool is_digesting = false;  // its answer is being made: nothing more is taken until it leaves
  };

  ReplicaServer(Parts parts, wire::UniqueFd wake);
  void make_engine();
  int save_memory();
  void forget_memory();
  void wait();
  void accept_all();
  bool make_room();
  static bool can_go_on(const Peer& peer);
  static short events_of(const Peer& peer);
  bool take_turn(std::uint64_t link, Peer& peer, short revents, wire::Instant now);
  bool serve(std::uint64_t link, Peer& peer);  // false: hang up
  bool take(std::uint64_t link, Peer& peer, const FrameSocket::Frame& frame);
  std::optional<std::string> refusal(const Peer& peer, const VolumeHello& hello) const;
  void greet(Peer& peer, VolumeHello hello);
  void hang_up(std::uint64_t link);
  void forget(std::uint64_t link);
  void carry_out(ReplicaActions& actions, const RequestMessage& asked);
  void send(std::uint64_t link, const AnswerMessage& answer);
  void finish_jobs(DiskWorker& worker);
  bool begin_digests(std::uint64_t link, Peer& peer, const DigestRequest& request);
  void finish_digests();
  std::string status() const;

  wire::UniqueFd listener_, wake_;
  RecordFile record_file_;
  StoredReplica stored_;  // what was given to the disk last
  VolumeFile file_;
  VolumeKey key_;
  const wire::Duration idle_;
  DataPath data_path_;
  std::optional<ReplicaEngine> engine_;
  std::map<std::uint64_t, Peer> peers_;
  std::uint64_t links_ = 0;
  std::uint64_t writer_link_ = 0;  // that pinged last
  Progress progress_;
  int disk_error_ = 0;
  std::atomic<bool> stop_asked_{false};
  std::unique_ptr<DiskWorker> record_worker_, flush_worker_, digest_worker_;
};

}  // namespace cepheus::replica
