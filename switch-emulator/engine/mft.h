// Multicast forwarding table of one group (paper III-B, figure 3): path index, path table, state of
// the turn.
//
// All PSNs here are group PSNs unless a name says "host". A path is known by its number in `paths`.
#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "switch-emulator/engine/message_ends.h"
#include "switch-emulator/engine/switch.h"

namespace cepheus::fabric {

using PathNo = std::uint16_t;
inline constexpr PathNo kNoPath = std::numeric_limits<PathNo>::max();

// Repeats of the packet that a path needs next, since it was heard.
//
// A path lags that leaves two of them unanswered, and as long as they go on: whoever is not asked
// has nothing to answer, and a source repeats what the slowest lack. From one repeat to the next a
// source waits twice as long at most.
class Repeats {
 public:
  void note(Instant now) {
    if (seen_ > 0 && now - last_ <= gap_ / 4) return;  // doubled on its way
    if (seen_ > 0) gap_ = now - last_;
    last_ = now;
    if (seen_ < kEnough) ++seen_;
  }
  void clear() { seen_ = 0, gap_ = {}; }
  bool go_on(Instant now) const { return seen_ == kEnough && now - last_ <= 3 * gap_; }

 private:
  static constexpr std::uint8_t kEnough = 2;
  Instant last_{};
  Duration gap_{0};
  std::uint8_t seen_ = 0;
};

struct Path {
  // A packet came from here.
  void hear() {
    if (is_back) was_down = is_back = false;
  }

  PortId port;
  bool is_host = false;
  bool was_down = false;  // its port, and nothing was heard since: the program may be another
  bool is_back = false;   // the port is up again: what is heard now was not under way before
  Qpn qpn;                // member's, if it is a host
  Repeats unanswered;
  Ipv4 host;
  std::uint32_t heard = 0;  // feedback packets from here
  Psn ack;                  // everything up to here has been acknowledged by all behind this path
  std::uint32_t turns = 0;  // T: packets of this host's finished turns, modulo 2^24
  std::uint32_t messages = 0;  // ... and the messages in them, for the MSN
};

// A sequence or RNR NAK that waits until every path has caught up with what it acknowledges.
struct HeldNak {
  Psn psn;
  bool rnr = false;
  std::uint8_t timer = 0;
};

// First packets of a newcomer (turns.h).
struct Gate {
  std::vector<Frame> frames;     // of one newcomer, in PSN order, as they arrived
  PathNo path = kNoPath;         // whose they are
  Ipv4 source;                   // ... and its turn's name, behind a switch port
  PathNo answered = kNoPath;     // path that was told RNR and has not begun again since
  std::uint8_t answers = 0;      // RNRs so far: a long wait needs few
  std::optional<Instant> since;  // somebody waits, and the source has been silent
};

struct GroupStats {
  std::uint64_t data_packets = 0, data_bytes = 0, copies = 0;
};

struct Group {
  static constexpr std::size_t kMaxPaths = kNoPath;  // what the path index can name

  Group(McstId mcst_id, std::uint16_t registration_epoch, std::size_t ports);

  const McstId id;
  const std::uint16_t epoch;
  const Psn start;  // S

  // Tree. `path_index[port]` means something only if that path's port is `port`.
  std::vector<PathNo> path_index;
  std::vector<Path> paths;
  PathNo leader = kNoPath;  // path towards the leader: where registration came from

  // Current turn.
  PathNo source = kNoPath;
  PathNo previous = kNoPath;  // the source of the turn before
  Ipv4 source_ip;
  Psn base;           // PSN of the turn's first packet
  Psn source_first;   // ... in the numbering of the source's port
  Psn sent;           // highest data PSN forwarded
  Psn agg;            // last PSN acknowledged to the source
  bool ended = true;  // the packet `sent` ended a message
  std::optional<HeldNak> nak;
  std::optional<Psn> asked;  // PSN of the NAK that went out last, until its packet passes again
  std::optional<Psn> said;   // PSN of the sequence NAK that went out last: no other is for it
  // Timer code of the next RNR for a last source that has not synchronised its PSNs; 0: there is
  // none.
  std::uint8_t handover_timer = 0;

  // Smallest `ack` over all paths but the source's. kNoPath if there is no such path: nobody to
  // wait for.
  PathNo slowest = kNoPath;

  MessageEnds ends;
  std::uint32_t turn_messages = 0;  // message ends of this turn that `agg` has passed
  Gate gate;
  GroupStats stats;

  PathNo find(PortId port) const {
    const PathNo at = path_index[port.value()];
    return at < paths.size() && paths[at].port == port ? at : kNoPath;
  }
  PathNo add_path(PortId port,
                  bool is_host);  // precondition: no path there yet, fewer than kMaxPaths
  // Takes a path out; the last one gets its number. Precondition: it is not the leader's.
  void remove_path(PathNo path);
  Psn min() const { return slowest == kNoPath ? sent : paths[slowest].ack; }
  void find_slowest();
  void set_ack(PathNo path, Psn ack);  // finds the slowest again only if it was this one
  void advance_aggregate(Psn to);      // counts the messages passed; never goes back
  void check_consistent(std::size_t max_held) const;
};

}  // namespace cepheus::fabric
