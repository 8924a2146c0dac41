// Replicas and writers on virtual time, with the faults of real hosts, disks, NICs and connections,
// and no others.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fabric-sim/core/random.h"
#include "replica/engine/replica_engine.h"
#include "replica/engine/writer.h"
#include "replica/sim/events.h"
#include "replica/sim/history.h"
#include "replica/sim/volume_plan.h"

namespace cepheus::replica::sim {

class World;

// An ordered connection that may be cut for a while, and broken by either end.
struct Link {
  std::uint64_t id = 0;
  unsigned writer = 0, replica = 0;
  bool writer_holds = true, replica_holds = true;
  // Empty instead of a message: the other end has closed.
  std::deque<std::pair<Instant, std::optional<Request>>> down;
  std::deque<std::pair<Instant, std::optional<Answer>>> up;
};

// Work of a disk: done at once, or in order after a hang.
class DiskQueue {
 public:
  explicit DiskQueue(Events& events) : events_(events) {}
  void hang(Instant until);
  void go_on();
  void forget() { waiting_.clear(); }  // the host is gone
  Instant hangs_until() const { return until_; }
  void run(std::function<void()> work);

 private:
  Events& events_;
  Instant until_{};
  std::deque<std::function<void()>> waiting_;
};

class ReplicaHost {
 public:
  ReplicaHost(World& world, unsigned index);
  void start();
  void crash(bool with_host);
  // Its disk fails, and a new one replaces it.
  void replace_disk();
  // Its disk completes nothing until then, without an error: for its record, its data, or both.
  void hang_disk(Instant until, bool record, bool data);
  void mend_disk();
  void crash_after(unsigned actions) { crash_in_ = actions + 1; }
  void live_on() { crash_in_ = 0; }
  bool is_up() const { return engine_ != nullptr; }
  void on_request(Link& link, const Request& request);
  void on_disconnected(Link& link);
  // The NIC's view: whether the group and the connections of that generation reach the memory.
  bool is_member(std::uint64_t link, std::uint64_t generation) const {
    const auto at = joined_.find(link);
    return is_up() && at != joined_.end() && at->second == generation;
  }
  std::uint64_t get(std::size_t block) const { return memory_[block]; }
  // A NIC stores block by block: one is in progress until it is set; a crash leaves half of it.
  void begin_landing(std::size_t block, std::uint64_t value) { landing_.emplace(block, value); }
  void set(std::size_t block, std::uint64_t value) {
    landing_.reset();
    memory_[block] = value;
  }
  const std::vector<std::uint64_t>& disk() const { return disk_; }
  const ReplicaRecord& record() const { return record_; }
  // Since it was last named as complete: whether its program ended; whether its memory was lost.
  bool has_crashed() const { return has_crashed_; }
  bool has_forgotten() const { return has_forgotten_; }
  Instant paused_until{};

 private:
  void answer(Link& link, const Answer& answer, const std::optional<ChunkBitmap>& to_flush,
              bool to_record);
  void flush(Link& link, const ChunkBitmap& chunks, const Answer& answer);
  // Writes back each block of `left` with a probability of `share`, and clears it there.
  void write_back(std::vector<bool>& left, double share);
  std::vector<bool> blocks_of(const ChunkBitmap& chunks) const;
  void save_record(const ReplicaRecord& now, bool is_named);

  World& world_;
  unsigned index_;
  ReplicaRecord record_;  // on disk
  DiskQueue record_disk_, data_disk_;
  bool lost_memory_ = false;
  std::vector<std::uint64_t> memory_, disk_;
  bool has_crashed_ = false, has_forgotten_ = false;
  unsigned starts_ = 0;
  std::optional<std::pair<std::size_t, std::uint64_t>> landing_;
  std::unique_ptr<ReplicaEngine> engine_;
  std::map<std::uint64_t, std::uint64_t>
      joined_;  // connection -> generation: several, if none is fenced
  unsigned crash_in_ = 0;
};

class WriterHost {
 public:
  WriterHost(World& world, unsigned index);
  void crash();
  void crash_after(unsigned actions) { crash_in_ = actions + 1; }
  void live_on() { crash_in_ = 0; }
  bool is_up() const { return engine_ != nullptr; }
  Writer& engine() { return *engine_; }
  void on_answer(Link& link, const Answer& answer);
  void on_disconnected(Link& link);
  void fail_group();
  void start_client();
  bool is_idle() const { return open_.empty(); }
  bool has_ended() const { return has_ended_; }
  void read_all();  // every block, once
  void flush();
  void pause(Instant until);
  Instant paused_until{};

 private:
  struct Group {
    std::uint64_t generation = 0;
    Members members, joining;
    std::vector<Link*> links;
    bool is_formed = false, is_dropped = false;
    Instant dead_at = Instant::max();  // arrival of a dropped group's last packet
    struct Landing {
      std::uint64_t attempt;
      std::size_t block;
      std::uint64_t value;
      bool is_last;
    };
    std::vector<std::deque<Landing>> pipes;    // by replica
    std::map<std::uint64_t, Members> lacking;  // by attempt
  };
  struct Io {
    IoRequest request;
    Instant begin;
    std::uint64_t value = 0;
  };

  void after(Duration delay, std::function<void()> work);
  // Passes the event to the engine, and executes its actions.
  template <typename Event, typename... Arguments>
  void handle(Event event, const Arguments&... arguments);
  void run(WriterActions& actions);
  void dial(unsigned replica, Duration delay);
  void form(const WriterAction& action);
  void drop();
  void write(const WriterAction& action);
  void pump(const std::shared_ptr<Group>& group, unsigned replica);
  // The replica's NIC takes READs and WRITEs of the group over its connection `link`.
  bool reaches(const Group& group, unsigned replica, std::uint64_t link) const;
  void read(const WriterAction& action);
  void copy(const WriterAction& action);
  void complete(const WriterAction& action);
  void note_phase();
  void submit_next();
  void submit(IoRequest request);
  void arm();
  void on_timer();
  void log_config();

  World& world_;
  unsigned index_;
  std::unique_ptr<Writer> engine_;
  std::vector<Link*> links_;
  std::shared_ptr<Group> group_;
  std::map<std::uint64_t, Io> open_;
  // By read: the time, and the values.
  std::map<std::uint64_t, std::pair<Instant, std::vector<std::uint64_t>>> found_;
  std::uint64_t ids_ = 0;
  unsigned crash_in_ = 0;
  bool has_client_ = false, has_served_ = false, is_serving_ = false, has_ended_ = false;
  Instant armed_ = Instant::max();
  Instant paused_from_{};
  Instant sure_since_;  // all earlier acknowledgements hold since then: it started, or serves again
  Epoch held_;          // the claim of its last serving
  Config logged_;       // last one in the trace
  bool is_logged_on_record_ = false;
};

class World {
 public:
  World(const VolumePlan& plan, const Rules& rules, std::uint64_t seed, bool trace);

  struct Outcome {
    std::optional<std::string> failure;
    std::uint64_t steps = 0, operations = 0, acknowledged = 0, evicted = 0, takeovers = 0,
                  disk_losses = 0;          // seeds where all replicas in sync lost their disks
    void operator+=(const Outcome& other);  // but for `failure`
  };
  Outcome run();

  Events events;
  cepheus::sim::Random random;
  History history;
  const VolumePlan plan;
  const Rules rules;
  std::vector<std::unique_ptr<ReplicaHost>> replicas;
  std::vector<std::unique_ptr<WriterHost>> writers;
  Outcome outcome;
  unsigned operations_left = 0;
  bool faults_ended = false;
  bool has_new_disk = false;    // some replica has had one
  bool disks_are_lost = false;  // of all replicas in sync, and no writer has served since
  Members refused;              // by the fabric: it forms no group with them

  void fail(const std::string& text);
  void log(const std::string& text) const;
  Duration soon(unsigned most_us) {
    return random.between(Duration{std::chrono::microseconds(1)},
                          Duration{std::chrono::microseconds(most_us)});
  }
  // End of the block between both.
  Instant blocked(unsigned writer, unsigned replica) const;
  Link* connect(unsigned writer, unsigned replica);
  void send(Link& link, std::optional<Request> request);
  void send(Link& link, std::optional<Answer> answer);
  // Closes the replica's or writer's connections.
  void drop_links_of_replica(unsigned replica);
  void drop_links_of_writer(unsigned writer);
  void add_writer();
  // As the user does whose writer reports that all disks in sync are new.
  void create_anew();
  // Notes the excuses from a replica's crash, from the loss of its memory, and from its new disk.
  void note_crash();
  void note_new_disk();
  void note_record();
  // A replica refuses others by it, even before its disk has it.
  void note_claim(const Epoch& promised);
  // Whether a replica has ever promised another writer than that of `own` a claim later than `own`.
  bool has_other_claim(const Epoch& own) const;
  // A replica in sync, none of `but`, has a disk with all flushed data.
  bool has_disk_in_sync(Members but) const;

 private:
  void pump_down(Link& link);
  void pump_up(Link& link);
  void inject(const Fault& fault);
  void lose_power(bool with_writer);
  void finish();
  void mend_disks();
  bool end_requests();
  bool come_to_serve();
  void compare();
  bool is_finished() const;
  bool run_until(Instant end, const std::function<bool()>& is_done);

  bool trace_;
  std::vector<std::unique_ptr<Link>> links_;
  std::vector<std::vector<Instant>> cuts_;  // writer, replica
  Config on_record_;                        // the latest that all its members recorded
  std::map<std::uint64_t, Epoch> claims_;   // by writer, its latest promised claim
};

// Runs one seed from its plan to its end.
World::Outcome run_seed(std::uint64_t seed, const Rules& rules = {}, bool trace = false);

}  // namespace cepheus::replica::sim
