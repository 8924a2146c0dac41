// One member of one group, of either lane, as broadcasts use it (uct_channel.h: by UCX's rc_mcast;
// direct_channel.h: by libmcast itself). The member and its channel live equally long.
//
// Every call, and every callback, runs under the transport's mutex.
#pragma once

#include <mcast/mcast.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cepheus::coll {

// A large message in flight: the caller's memory until done() has run, once.
struct Transfer {
  enum class Result : std::uint8_t {
    kDone,      // sent: every member has it
    kMistaken,  // received, but it is another message than this one
    kFailed     // the group has failed
  };
  void (*done)(Transfer* transfer, Result result, std::size_t length);
  void* owner;
  std::uint32_t tag;  // of the message: the channel's
  // The channel's own.
  static constexpr std::size_t kBytes = 128;
  alignas(std::max_align_t) std::byte bytes[kBytes];
};

class Channel {
 public:
  // Travels with small messages, so that either form understands the other: rc_mcast's number of an
  // active message.
  static constexpr std::uint8_t kSmallId = 1;

  enum class Status : std::uint8_t { kStarted, kFull, kFailed };
  // A small message of `length` bytes has arrived: it stays where it is until release(data).
  using Arrival = void (*)(void* arg, Channel* channel, void* data, std::size_t length);

  // `arrival`: null for a bulk lane.
  Channel(Arrival arrival, void* arg) : arrival_(arrival), arrival_arg_(arg) {}
  virtual ~Channel() = default;
  // For queries and recovery.
  virtual mcast_group_h group() const = 0;
  // This member waits for the leader, and takes messages from now on.
  virtual mcast_status_t join() = 0;
  // Instead: registers the group of `members`, with this member as its leader.
  virtual mcast_status_t lead(const std::vector<mcast_member_t>& members) = 0;
  // Small messages: pack(dest, arg) writes one, at most as long as the lane allows, inside the
  // call.
  virtual Status send_small(mcast_pack_cb_t pack, void* arg) = 0;
  virtual void release(void* data) = 0;
  // Large messages. Receives match in the order of their posting; `tag` identifies the message.
  virtual Status send(const void* data, std::size_t length, std::uint32_t tag,
                      Transfer& transfer) = 0;
  virtual Status receive(void* data, std::size_t length, std::uint32_t tag, Transfer& transfer) = 0;

 protected:
  bool takes_small() const { return arrival_ != nullptr; }
  void arrived(void* data, std::size_t length) { arrival_(arrival_arg_, this, data, length); }

 private:
  Arrival arrival_;
  void* arrival_arg_;
};

}  // namespace cepheus::coll
