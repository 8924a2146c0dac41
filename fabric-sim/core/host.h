// A host on virtual time: the NIC's engine, a cable to its switch that sends at the cable's rate,
// and the host's programs.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fabric-sim/core/cable.h"
#include "net/pfc.h"
#include "nic-emulator/engine/nic.h"
#include "wire/mrp_key.h"
#include "wire/publication.h"
#include "wire/sender_group.h"

namespace cepheus::sim {

// A program that owns a queue pair. Its functions are called on virtual time, never from within its
// own call of the host.
class CompletionClient {
 public:
  virtual ~CompletionClient() = default;
  virtual void on_completion(Instant now, const rnic::Completion& completion) = 0;
  // The NIC has generated a completion, which the program gets later. For tests that keep a record.
  virtual void on_arrival(const rnic::Completion&) {}
};

// A program that receives registration datagrams at a UDP port of the host.
class DatagramClient {
 public:
  virtual ~DatagramClient() = default;
  virtual void on_datagram(Instant now, wire::Ipv4 from, const wire::MrpMessage& message) = 0;
  // The same for a sender group.
  virtual void on_sender_group(Instant, wire::Ipv4, const wire::SenderGroupMessage&) {}
};

// Called for every frame that reaches a host, before the host gets it.
class FrameWatch {
 public:
  virtual ~FrameWatch() = default;
  virtual void on_arrival(Instant now, wire::Ipv4 host, const wire::Frame& frame) = 0;
};

// Changes frames that a NIC sends, as a hostile device would.
class FrameTamper {
 public:
  virtual ~FrameTamper() = default;
  // A payload outside the frame is in `buffer`. False: the frame is not sent.
  virtual bool tamper(Instant now, wire::Frame& frame, std::span<std::uint8_t> buffer) = 0;
};

class Host final : public Actor, public FrameSink {
 public:
  Host(Simulator& simulator, BufferPool& pool, std::string name, const rnic::NicConfig& nic,
       std::uint16_t mrp_port);

  void connect(Cable& uplink) { uplink_ = &uplink; }
  void set_watch(FrameWatch* watch) { watch_ = watch; }
  void set_tamper(FrameTamper* tamper) { tamper_ = tamper; }
  void set_checked(bool checked) { is_checked_ = checked; }
  // Its name in recordings.
  void set_number(std::uint16_t number) { number_ = number; }
  std::uint16_t number() const { return number_; }
  // The fabric's key, which signs registration; null: no signature.
  void set_key(std::shared_ptr<const wire::MrpKey> key) { key_ = std::move(key); }
  void attach(rnic::Qpn qpn, CompletionClient& client) { by_qpn_[qpn] = &client; }
  // Parts of one program share a port: each gets every datagram.
  void listen(DatagramClient& client, std::uint16_t control_port) {
    listeners_.push_back({&client, control_port});
  }

  // Calls of the NIC; their completions are delivered and their packets sent.
  wire::Result<rnic::Qpn> create_qp(const rnic::QpInit& init) { return nic_.create_qp(init); }
  wire::Result<void> modify_qp(rnic::Qpn qpn, const rnic::QpAttr& attr, std::uint32_t mask);
  wire::Result<void> post_send(rnic::Qpn qpn, const rnic::SendWr& wr);
  wire::Result<void> post_recv(rnic::Qpn qpn, const rnic::RecvWr& wr);
  rnic::Nic& nic() { return nic_; }
  // Until then the NIC gets no frames and no timers. Programs go on.
  void stall_nic(Instant until);
  // Until then programs get no completions and no datagrams. The NIC goes on.
  void stall_programs(Instant until);
  // Stalls both, as in a paused virtual machine.
  void pause(Instant until);
  // Programs with their own timers wait until then.
  Instant programs_awake_at() const { return programs_awake_at_; }
  Instant nic_awake_at() const { return nic_awake_at_; }
  // For ever, or until revive(): drops frames and ignores timers.
  void die();
  void revive() { dead_ = false; }
  bool is_dead() const { return dead_; }
  // Sends a frame unchanged, genuine or forged.
  void send_frame(const wire::Frame& frame);
  wire::Mac gateway() const { return nic_.config().gateway; }
  // Sends one MRP datagram from the program at that port.
  void send_datagram(const wire::MrpMessage& message, std::uint16_t control_port);
  void send_datagram(const wire::Publication& message, std::uint16_t control_port);
  void send_datagram(wire::Ipv4 to, const wire::SenderGroupMessage& message,
                     std::uint16_t control_port);

  const std::string& name() const { return name_; }
  wire::Ipv4 address() const { return nic_.config().address; }
  std::uint64_t frames_to_nic() const { return frames_to_nic_; }
  const net::PauseState& data_pause() const { return data_pause_; }
  // Registration datagrams that arrived for this host.
  std::uint64_t datagrams() const { return datagrams_in_; }

  void receive(Instant now, wire::PortId port, const wire::Frame& frame) override;
  void on_event(Instant now, std::uint64_t what) override;

 private:
  enum What : std::uint64_t { kTransmit, kTimer, kWakeNic, kDeliver, kWakePrograms };

  template <typename Message>
  void send_any(wire::Ipv4 to, const Message& message, std::uint16_t control_port);
  void after_nic_call();
  void transmit(Instant now);
  bool next_frame(Instant now, wire::Frame& frame);
  void on_pause(Instant now, const wire::Frame& frame);
  bool may_send_first_datagram(Instant now) const;
  void arrange_transmission();
  void deliver(Instant now);
  void on_udp(Instant now, const wire::Frame& frame);
  void read(Instant now, const wire::UdpDatagram& datagram,
            std::span<const std::uint8_t> signed_payload);

  struct Listener {
    DatagramClient* client;
    std::uint16_t port;
  };

  // Members that every frame touches come first.
  Simulator& simulator_;
  BufferPool& pool_;
  FrameWatch* watch_ = nullptr;
  FrameTamper* tamper_ = nullptr;
  std::uint64_t frames_to_nic_ = 0;
  Instant nic_awake_at_{};
  Instant programs_awake_at_{};
  Instant timer_at_ = wire::kNever;     // earliest timer event requested
  Instant free_at_{};                   // when the cable has taken the last frame
  Instant transmit_at_ = wire::kNever;  // earliest transmission requested
  bool dead_ = false;
  bool is_checked_ = true;
  bool delivery_scheduled_ = false;
  std::uint16_t number_ = 0;
  rnic::Nic nic_;
  rnic::NicOutput actions_;
  std::deque<rnic::Completion> completions_;  // not yet delivered to their program
  std::deque<wire::Frame> datagrams_;         // sent before the NIC's packets
  Cable* uplink_ = nullptr;
  net::PauseState data_pause_;  // by the switch's pause frames
  const std::string name_;
  const std::uint16_t mrp_port_;
  std::shared_ptr<const wire::MrpKey> key_;
  std::map<rnic::Qpn, CompletionClient*> by_qpn_;
  std::vector<Listener> listeners_;
  std::uint64_t datagrams_in_ = 0;
  std::deque<wire::Frame> missed_;  // arrived while the NIC was stalled
  std::deque<wire::Frame> unread_;  // ... while programs were
};

}  // namespace cepheus::sim
