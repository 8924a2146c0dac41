// What a group does with its packets: one object a group, made when the group is registered.
//
// Registration, ageing, eviction and views call these functions and know nothing else of it.
// make_behaviour() (switch.h) is the one place that chooses.
#pragma once

#include <vector>

#include "switch-emulator/engine/group_packet.h"
#include "wire/publication.h"

namespace cepheus::fabric {

struct Call;

// What the leader hears of a host in a REPORT.
struct HostReport {
  std::uint8_t flags = 0;   // wire::kMemberDown and so on; 0: nothing
  std::uint32_t heard = 0;  // packets from it, modulo 2^24
};

class Behaviour {
 public:
  virtual ~Behaviour() = default;
  Behaviour(const Behaviour&) = delete;
  Behaviour& operator=(const Behaviour&) = delete;

  // Takes a RoCE packet of an active group; its ICRC has been checked.
  virtual void on_packet(Call& call, const GroupPacket& packet) = 0;
  // on_timer() is called when deadline() has passed, and moves it. Only active groups have timers.
  Instant deadline() const { return deadline_; }
  virtual void on_timer(Call&) {}

  // The tree. A path has come, as the last one.
  virtual void on_path_added() = 0;
  // A path has left, and the last one has its number. What the group waited for may be there now.
  struct Removed {
    PathNo gone, last;
    PortId port;  // of the path that has left
  };
  virtual void on_path_removed(Call& call, const Removed& removed) = 0;
  virtual void on_port_down(PathNo path) = 0;
  virtual void on_port_up(PathNo path) = 0;

  // Frames that the group keeps. release_held() drops them all: the group will be freed.
  virtual std::size_t held() const = 0;
  virtual void release_held(Call& call) = 0;

  // Registration. Flags of REGISTER that tell the members how the group is served (wire::MrpHeader).
  virtual std::uint16_t register_flags() const = 0;
  // The host at `path` publishes its regions.
  enum class Published : std::uint8_t { kYes, kTooOld, kNotServed };
  virtual Published on_publication(Call& call, PathNo path,
                                   const wire::Publication& publication) = 0;
  // The host at `path` as the leader should hear of it; `is_up`: its port is.
  virtual HostReport report(const Call& call, PathNo path, bool is_up) const = 0;
  // Can what is in flight still end when the host at `path` has left?
  virtual bool may_outlive(PathNo path) const = 0;

  // What an administrator sees: fills in all that is not the tree's.
  virtual void show(const SwitchConfig& config, GroupView& view) const = 0;
  virtual TableBytes bytes() const = 0;
  // The ports that data goes to when it comes in by `ingress`.
  virtual void list_copies(PortId ingress, std::vector<PortId>& out) const = 0;
  // For simulation (Switch::jump).
  virtual bool jump(std::uint64_t packets) = 0;
  virtual void check_consistent(std::size_t max_held) const = 0;

 protected:
  Behaviour() = default;
  void set_deadline(Instant at) { deadline_ = at; }

 private:
  Instant deadline_ = wire::kNever;
};

}  // namespace cepheus::fabric
