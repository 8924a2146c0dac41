// The writer of a volume, live: its engine between callers, control connections and the NIC, on a
// thread of its own.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "replica/engine/writer.h"
#include "replica/volume/group_path.h"
#include "replica/volume/replica_link.h"
#include "replica/volume/request_queue.h"

namespace cepheus::replica {

struct VolumeOptions {
  std::string volume, device;
  std::vector<Endpoint> replicas;
  unsigned depth = 64;
  std::uint64_t copy_rate = 0;
  wire::Duration open_timeout = std::chrono::seconds(10);
  Multicast multicast = Multicast::kCepheus;
  VolumeKey key;
};

class Volume {
 public:
  static constexpr std::size_t kMostRequest = 4 << 20;

  struct Failure {
    int error;  // negative
    std::string text;
  };
  // Serves when it returns.
  static tl::expected<std::unique_ptr<Volume>, Failure> open(VolumeOptions options);
  ~Volume();

  const Geometry& geometry() const { return geometry_; }
  // As in <cepheus/volume.h>.
  int submit(IoRequest io, void* buffer, unsigned flags, cepheus_volume_done_t done, void* arg);
  std::string status();

 private:
  explicit Volume(VolumeOptions options, wire::UniqueFd wake);

  void run();
  void wait(wire::Instant now, bool may_spin);
  bool take_submitted(wire::Instant now);
  bool look_at_links(wire::Instant now);
  bool look_at_group(wire::Instant now);
  void on_welcomed(wire::Instant now, unsigned replica);
  void begin(const Geometry& geometry);
  void execute(wire::Instant now);
  void execute(wire::Instant now, WriterAction& action);
  void form(wire::Instant now, const WriterAction& action);
  void publish(wire::Instant now);
  void measure_copies(wire::Instant now);
  Progress progress_of(unsigned replica) const;
  std::string status_json() const;
  std::string failure() const;  // the reason of the engine's end; "": it has not ended
  void refuse(int error, std::string text);
  void wake();
  std::string missing_replicas() const;

  VolumeOptions options_;
  wire::UniqueFd wake_;
  Geometry geometry_;
  std::vector<ReplicaLink> links_;
  std::unique_ptr<RequestQueue> requests_;
  std::unique_ptr<GroupPath> path_;
  std::unique_ptr<Writer> engine_;
  WriterActions actions_, doing_;
  std::vector<GroupPath::Event> events_;
  std::vector<AnswerMessage> answers_;
  std::vector<unsigned> taken_;
  std::vector<short> revents_;
  wire::Instant last_work_{}, measured_at_{};
  std::uint64_t measured_bytes_ = 0, copy_rate_ = 0;
  std::uint64_t requests_done_ = 0;

  std::mutex mutex_;  // guards the state that callers' threads read
  std::condition_variable changed_;
  bool serves_ = false;
  std::string status_;
  std::optional<Failure> failure_;
  std::atomic<bool> status_requested_{false}, sleeps_{false}, ends_{false};
  std::thread thread_;
};

}  // namespace cepheus::replica
