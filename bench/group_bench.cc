// A live switch, measured through its shared-memory ports: how long the registration of a group
// takes, and how many 4-KiB copies a second one core makes. One thread plays all hosts and answers
// at once; payloads are referred to, not read, so that the switch alone is the limit.
//
//     group_bench registration MEMBERS ROUNDS     microseconds of each round
//     group_bench copies RECEIVERS SECONDS        copies per second of the switch thread's CPU time, and
//                                                 the same, by turns, while somebody records
//
// One JSON object on standard output.
#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "controller/membership.h"
#include "controller/registration.h"
#include "switch-emulator/live/live_fabric.h"
#include "switch-emulator/live/status/control_protocol.h"
#include "switch-emulator/ports/host_port.h"
#include "wire/clock.h"
#include "wire/roce.h"

namespace cepheus {
namespace {

using fabric::HostPort;
using mrp::Outbox;
using wire::Frame;
using wire::Instant;

constexpr std::uint32_t kMtu = 4096;
constexpr std::uint32_t kBurst = 128;    // packets under way
constexpr std::uint32_t kAckEvery = 32;  // as the NIC requests ACKs
constexpr auto kTimeLimit = std::chrono::seconds(30);

class LiveSwitch {
 public:
  explicit LiveSwitch(std::size_t hosts)
      : socket_("/tmp/cepheus-bench-" + std::to_string(getpid())) {
    auto started = live::LiveFabric::start(net::Topology::star(static_cast<std::uint32_t>(hosts)),
                                           {.socket = socket_, .pcap_dir = ""});
    if (!started) throw std::runtime_error(started.error().text);
    fabric_ = std::move(*started);
    thread_ = std::thread([this] { fabric_->run(); });
  }
  ~LiveSwitch() {
    fabric_->stop();
    thread_.join();
  }

  std::unique_ptr<HostPort> attach(std::size_t host) const {
    auto port = HostPort::attach({socket_, "#" + std::to_string(host)});
    if (!port) throw std::runtime_error(port.error().text);
    return std::move(*port);
  }
  const std::string& socket() const { return socket_; }
  // Time its thread has spent on a core, seconds.
  double cpu_seconds() {
    clockid_t clock{};
    timespec t{};
    pthread_getcpuclockid(thread_.native_handle(), &clock);
    clock_gettime(clock, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
  }

 private:
  std::string socket_;
  std::unique_ptr<live::LiveFabric> fabric_;
  std::thread thread_;
};

// Requests a fabric's packet events repeatedly, as `cepheusctl record` does.
class Recorder {
 public:
  explicit Recorder(const std::string& socket)
      : thread_([this, socket](const std::stop_token& ends) { run(socket, ends); }) {
    while (!has_begun_.load()) std::this_thread::yield();
  }

 private:
  void run(const std::string& socket, const std::stop_token& ends) {
    nlohmann::json request = {{"ask", "record"}, {"recorder", 1}};
    while (!ends.stop_requested()) {
      if (const auto answer = live::send_request(socket, request); !answer) break;
      has_begun_.store(true);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    has_begun_.store(true);
    request["end"] = true;
    (void)live::send_request(socket, request);
  }

  std::atomic<bool> has_begun_{false};
  std::jthread thread_;  // the destructor stops and joins it
};

struct Host {
  std::unique_ptr<HostPort> port;
  mrp::Membership membership;
};

// All hosts of one switch, host 0 the leader and the source.
class Hosts {
 public:
  Hosts(const LiveSwitch& on, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      auto port = on.attach(i);
      const wire::MrpMember self{port->identity().address,
                                 wire::Qpn(0x100 + static_cast<std::uint32_t>(i)), 0};
      members_.push_back(self);
      hosts_.push_back({std::move(port), mrp::Membership(self)});
    }
  }
  std::size_t size() const { return hosts_.size(); }
  HostPort& port(std::size_t host) { return *hosts_[host].port; }

  // From the first REGISTER until every member has confirmed that data may flow, microseconds.
  double register_group(wire::McstId id, std::uint16_t epoch) {
    for (std::size_t i = 0; i < size(); ++i) hosts_[i].membership = mrp::Membership(members_[i]);
    mrp::RegistrationConfig config;
    config.host = members_[0].host;
    config.instance = 1;
    config.timeout = kTimeLimit;
    mrp::Registration registration(config, id, epoch);
    if (!hosts_[0].membership.lead(id, epoch, config.instance))
      throw std::runtime_error("can't lead");
    Outbox out;
    const Instant began = wire::monotonic_now();
    if (auto ok = registration.start(began, members_, out); !ok)
      throw std::runtime_error(ok.error().text);
    send(0, out);
    run(registration, mrp::Registration::State::kActive);
    const double took =
        std::chrono::duration<double, std::micro>(wire::monotonic_now() - began).count();
    if (!keep_) {
      registration.unregister(wire::monotonic_now(), out);
      send(0, out);
      run(registration, mrp::Registration::State::kGone);
    }
    return took;
  }
  void keep_group() { keep_ = true; }

 private:
  void send(std::size_t host, Outbox& out) {
    for (const wire::MrpMessage& each : out.messages) send_datagram(host, each);
    out.clear();
    port(host).flush();
  }

  void send_datagram(std::size_t host, const wire::MrpMessage& message) {
    HostPort& from = port(host);
    std::array<std::uint8_t, wire::MrpMessage::kMaxSize> bytes;
    const std::span<const std::uint8_t> data(bytes.data(), message.emit(bytes));
    wire::UdpDatagram headers;
    headers.ethernet.source = from.identity().mac;
    headers.ethernet.destination = from.identity().gateway;
    headers.ip.source = from.identity().address;
    headers.ip.destination = message.header.mcst_id;
    headers.udp.source_port = 40000;
    headers.udp.destination_port = wire::kDefaultMrpUdpPort;
    Frame frame;
    headers.emit(frame, data);
    if (frame.external != nullptr) {
      const auto slot = from.tx_buffer();
      std::copy(data.begin(), data.end(), slot.begin());
      frame.set_external_payload(slot.first(data.size()), wire::kNoBuffer);
    }
    from.send(frame);
  }

  void run(mrp::Registration& registration, mrp::Registration::State until) {
    const Instant limit = wire::monotonic_now() + kTimeLimit;
    while (registration.state() != until) {
      const Instant now = wire::monotonic_now();
      if (now > limit) throw std::runtime_error("no group: " + registration.error().text);
      Outbox out;
      if (registration.deadline() <= now) registration.on_timer(now, out);
      send(0, out);
      for (std::size_t i = 0; i < size(); ++i) receive(i, now, registration);
    }
  }

  void receive(std::size_t host, Instant now, mrp::Registration& registration) {
    Frame frame;
    Outbox out;
    while (port(host).receive(frame)) {
      const auto headers = wire::UdpDatagram::parse(frame);
      const auto message = headers ? wire::MrpMessage::parse(frame.payload()) : std::nullopt;
      if (!message) continue;
      if (host == 0) {
        registration.on_message(now, headers->ip.source, *message, out);
        continue;
      }
      mrp::Membership& member = hosts_[host].membership;
      if (member.on_message(now, headers->ip.source, *message, out) ==
          mrp::Membership::Task::kConnect) {
        member.connected(now, true, out);
      }
    }
    port(host).release();
    send(host, out);
  }

  std::vector<wire::MrpMember> members_;
  std::vector<Host> hosts_;
  bool keep_ = false;
};

class Stream {
 public:
  Stream(Hosts& hosts, wire::McstId id, std::uint16_t epoch)
      : hosts_(hosts), id_(id), psn_(wire::group_start_psn(id, epoch)), unread_(hosts.size(), 0) {}

  // Packets delivered, all receivers together, within about `seconds`.
  std::uint64_t run(double seconds) {
    const Instant end = wire::monotonic_now() + std::chrono::duration_cast<wire::Duration>(
                                                    std::chrono::duration<double>(seconds));
    std::uint64_t copies = 0;
    while (wire::monotonic_now() < end) {
      for (std::uint32_t n = 0; n < kBurst; ++n) send_packet();
      hosts_.port(0).flush();
      copies += receive_burst();
    }
    return copies;
  }

 private:
  wire::RoceHeaders headers_from(HostPort& port) const {
    wire::RoceHeaders headers;
    headers.ethernet.source = port.identity().mac;
    headers.ethernet.destination = port.identity().gateway;
    headers.ip.source = port.identity().address;
    headers.ip.destination = id_;
    headers.udp.source_port = 0xC000;
    headers.bth.destination_qp = wire::kVirtualQpn;
    return headers;
  }

  void send_packet() {
    HostPort& source = hosts_.port(0);
    std::span<std::uint8_t> slot;
    while ((slot = source.tx_buffer()).empty()) std::this_thread::yield();
    wire::RoceHeaders headers = headers_from(source);
    headers.bth.opcode = wire::Opcode::kRcSendOnly;
    headers.bth.psn = psn_;
    headers.bth.ack_request = ++sent_ % kAckEvery == 0;
    psn_ = psn_ + 1;
    Frame frame;
    headers.emit(frame, kMtu);
    frame.set_external_payload(slot.first(kMtu), wire::kNoBuffer);
    source.send(frame);
  }

  std::uint64_t receive_burst() {
    std::uint64_t copies = 0;
    const Instant limit = wire::monotonic_now() + kTimeLimit;
    const std::uint64_t wanted = kBurst * (hosts_.size() - 1);
    while (copies < wanted) {
      const std::uint64_t before = copies;
      for (std::size_t i = 1; i < hosts_.size(); ++i) copies += receive(i);
      Frame acknowledgement;
      while (hosts_.port(0).receive(acknowledgement)) continue;
      hosts_.port(0).release();
      if (copies == before) std::this_thread::yield();
      if (wire::monotonic_now() > limit) throw std::runtime_error("packets got lost");
    }
    return copies;
  }

  std::uint64_t receive(std::size_t host) {
    HostPort& port = hosts_.port(host);
    Frame frame;
    std::uint64_t received = 0;
    while (port.receive(frame)) {
      ++received;
      if (++unread_[host] % kAckEvery != 0) continue;
      const auto data = wire::RoceHeaders::parse(frame);
      wire::RoceHeaders headers = headers_from(port);
      headers.bth.opcode = wire::Opcode::kRcAcknowledge;
      headers.bth.psn = data->bth.psn;
      Frame answer;
      headers.emit(answer, 0);
      port.send(answer);
    }
    port.release();
    port.flush();
    return received;
  }

  Hosts& hosts_;
  wire::McstId id_;
  wire::Psn psn_;
  std::uint64_t sent_ = 0;
  std::vector<std::uint64_t> unread_;
};

constexpr int kTurns = 5;  // with and without a recorder
constexpr wire::McstId kFirstGroup{198, 18, 0, 1};

// This pause gives a host its whole burst back (live/datapath/unanswered_account.h).
constexpr wire::Duration kRest = std::chrono::milliseconds(12);

nlohmann::json measure_registration(std::size_t members, int rounds) {
  LiveSwitch live(members);
  Hosts hosts(live, members);
  nlohmann::json times = nlohmann::json::array();
  for (int round = 0; round < rounds; ++round) {
    // One after the other without a pause they are a flood, and are held back as such.
    const Instant rested = wire::monotonic_now() + kRest;
    while (wire::monotonic_now() < rested) std::this_thread::yield();
    const wire::McstId id(kFirstGroup.value() + static_cast<std::uint32_t>(round));
    times.push_back(hosts.register_group(id, 1));
  }
  return {{"members", members}, {"us", times}};
}

nlohmann::json measure_copies(std::size_t receivers, double seconds) {
  LiveSwitch live(receivers + 1);
  Hosts hosts(live, receivers + 1);
  hosts.keep_group();
  hosts.register_group(kFirstGroup, 1);
  Stream stream(hosts, kFirstGroup, 1);
  stream.run(seconds / 10);  // caches and branches warm up
  struct Sum {
    std::uint64_t copies = 0;
    double cpu_seconds = 0;
  };
  const auto measure = [&](Sum& sum) {
    const double before = live.cpu_seconds();
    sum.copies += stream.run(seconds / kTurns);
    sum.cpu_seconds += live.cpu_seconds() - before;
  };
  Sum alone, recorded;
  for (int turn = 0; turn < kTurns; ++turn) {
    measure(alone);
    const Recorder recorder(live.socket());
    measure(recorded);
  }
  const auto rate = [](const Sum& sum) {
    return static_cast<double>(sum.copies) / sum.cpu_seconds;
  };
  return {{"receivers", receivers},
          {"copies", alone.copies},
          {"cpu_seconds", alone.cpu_seconds},
          {"copies_per_cpu_second", rate(alone)},
          {"copies_per_cpu_second_recorded", rate(recorded)}};
}

}  // namespace
}  // namespace cepheus

int main(int argc, char** argv) {
  const std::string what = argc == 4 ? argv[1] : "";
  const std::size_t count = argc == 4 ? std::strtoul(argv[2], nullptr, 10) : 0;
  const double amount = argc == 4 ? std::strtod(argv[3], nullptr) : 0;
  if ((what != "registration" && what != "copies") || count == 0 || amount <= 0) {
    std::fprintf(stderr,
                 "usage: group_bench registration MEMBERS ROUNDS | copies RECEIVERS SECONDS\n");
    return 2;
  }
  try {
    const nlohmann::json result =
        what == "copies" ? cepheus::measure_copies(count, amount)
                         : cepheus::measure_registration(count, static_cast<int>(amount));
    std::printf("%s\n", result.dump().c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "group_bench: %s\n", error.what());
    return 1;
  }
}
