#include "tests/hostile/attacks.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <random>

#include "switch-emulator/live/status/control_protocol.h"
#include "switch-emulator/ports/test_segment.h"

namespace cepheus::hostile {
namespace {

using fabric::UniqueFd;

// The mark that steady_check puts into all its broadcasts (MARK there).
constexpr std::uint8_t kMark[] = {0x75, 0xB1, 0x1F, 0x5E, 0xA5, 0xE7, 0xC4, 0x5E};

// Without waiting; it may fail.
UniqueFd connect_at_once(const std::string& path, int type) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  UniqueFd fd(socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  static_cast<void>(connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address));
  return fd;
}

class CpuLoad final : public Attack {
 public:
  explicit CpuLoad(const Scenario& scenario) : port_(attach(scenario)) {}
  void step() override {
    for (int n = 0; n < 20'000; ++n) asm volatile("" ::: "memory");
  }

 private:
  std::unique_ptr<fabric::HostPort> port_;
};

class RingAttack final : public Attack {
 public:
  RingAttack(const Scenario& scenario, bool has_true_indices)
      : scenario_(scenario), has_true_indices_(has_true_indices) {
    come_back();
  }
  void step() override {
    const auto tx = client_->segment().tx();
    tx.produced->store(has_true_indices_ ? tx.consumed->load() + tx.capacity : random_());
    if (!has_true_indices_) client_->segment().returns().consumed->store(random_());
    client_->ring_doorbell();
    if (!has_true_indices_) come_back();
  }

 private:
  void come_back() {
    client_.reset();
    client_ = attach_raw(scenario_);
    const auto tx = client_->segment().tx();
    for (std::uint32_t n = 0; n < tx.capacity; ++n) {
      auto* bytes = reinterpret_cast<std::uint8_t*>(&tx.entries[n]);
      std::generate(bytes, bytes + sizeof(fabric::Descriptor),
                    [&] { return static_cast<std::uint8_t>(random_()); });
    }
  }

  const Scenario scenario_;
  const bool has_true_indices_;
  std::mt19937 random_{7};
  std::unique_ptr<live::RawClient> client_;
};

// switch-emulator/live/datapath/hostile_rings_test.cc does the same to a datapath, exhaustively.
class WordAttack final : public Attack {
 public:
  explicit WordAttack(const Scenario& scenario) : scenario_(scenario) {}
  void step() override {
    const auto client = attach_raw(scenario_);
    fabric::RingConsumer<fabric::Descriptor> rx(client->segment().rx());
    fabric::RingProducer<fabric::Descriptor> tx(client->segment().tx());
    for (int round = 0; round < kRounds; ++round) {
      const std::uint32_t corrupted = random_(), actions = random_();
      if ((actions & 1) != 0 && rx.available() > 0) {
        fabric::Descriptor thrown_away;
        rx.take(thrown_away);
        rx.release();
      }
      if ((actions & 2) != 0 && tx.free_entries() > 0) {
        tx.next() = to_victim();
        tx.advance();
        tx.publish();
      }
      // Mostly few: one senseless descriptor ends the attachment.
      const auto words = shared_words(client->segment());
      for (std::size_t n = 0; n < words.size(); ++n) {
        if ((corrupted >> 3 * n & 7) == 0) words[n](random_() >> random_() % 32);
      }
      if ((actions & 4) != 0) client->ring_doorbell();
    }
  }

 private:
  static constexpr int kRounds = 8;

  fabric::Descriptor to_victim() const {
    wire::UdpDatagram datagram;
    datagram.ip.destination = scenario_.victim;
    datagram.udp.destination_port = 9;  // RFC 863
    wire::Frame frame;
    datagram.emit(frame, std::array<std::uint8_t, 16>{});
    fabric::Descriptor descriptor{};
    write_descriptor(frame, fabric::Descriptor::kInline, descriptor);
    return descriptor;
  }

  const Scenario scenario_;
  std::mt19937 random_{7};
};

class Spy final : public Attack {
 public:
  explicit Spy(const Scenario& scenario)
      : scenario_(scenario),
        client_(attach_raw(scenario)),
        rx_(client_->segment().rx()),
        tx_(client_->segment().tx()) {}
  ~Spy() override {
    read_all();
    for (const int file : client_->shared_files()) look_through(file);
  }
  void step() override {
    if (steps_++ % kStepsBetweenRequests == 0) request();
    read_all();
    std::this_thread::yield();
  }

 private:
  static constexpr std::size_t kAtOnce = 1 << 20;
  static constexpr std::uint64_t kStepsBetweenRequests = 1024;
  static constexpr wire::McstId kGroup{198, 18, 202, 1};

  template <typename Headers>
  Headers to_group() const {
    Headers headers;
    headers.ethernet.source = client_->identity().mac;
    headers.ethernet.destination = client_->identity().gateway;
    headers.ip.source = client_->identity().address;
    headers.ip.destination = kGroup;
    return headers;
  }
  void put(const wire::Frame& frame) {
    if (tx_.free_entries() == 0) return;
    write_descriptor(frame, fabric::Descriptor::kInline, tx_.next());
    tx_.advance();
    tx_.publish();
    client_->ring_doorbell();
  }
  // The victim refuses membership, and the switch should publish the group.
  void request() {
    for (const auto type : {wire::MrpType::kRegister, wire::MrpType::kActivate}) {
      wire::MrpMessage message;
      message.header.type = type;
      message.header.epoch = 1;
      message.header.mcst_id = kGroup;
      message.header.instance = 77;
      message.header.flags = type == wire::MrpType::kActivate;
      if (type == wire::MrpType::kRegister) {
        message.add({client_->identity().address, wire::Qpn(0x77)});
        message.add({scenario_.victim, wire::Qpn(0x78)});
      }
      std::array<std::uint8_t, wire::MrpMessage::kMaxSize> bytes;
      auto datagram = to_group<wire::UdpDatagram>();
      datagram.udp.source_port = 40000;
      datagram.udp.destination_port = wire::kDefaultMrpUdpPort;
      wire::Frame frame;
      datagram.emit(frame, std::span(bytes).first(message.emit(bytes)));
      if (frame.external == nullptr) put(frame);
    }
    auto read = to_group<wire::RoceHeaders>();
    read.bth.opcode = wire::Opcode::kRcReadRequest;
    read.bth.destination_qp = wire::kVirtualQpn;
    read.bth.psn = wire::group_start_psn(kGroup, 1);
    read.reth = wire::Reth{0, 0, 1};
    wire::Frame frame;
    read.emit(frame, 0);
    put(frame);
  }

  static void report(const char* what) {
    std::fprintf(stderr, "leak: %s\n", what);
    std::fflush(stderr);
  }
  void read_all() {
    fabric::Descriptor got;
    while (rx_.available() > 0) {
      rx_.take(got);
      if (!fabric::has_nothing_behind_its_lengths(got)) report("bytes behind a frame's lengths");
    }
    rx_.release();
  }
  // Every byte of the rings and of the pool, also those without a reference from a frame.
  static void look_through(int file) {
    std::vector<std::uint8_t> bytes(kAtOnce + sizeof kMark);
    for (off_t at = lseek(file, 0, SEEK_DATA); at >= 0; at = lseek(file, at, SEEK_DATA)) {
      const ssize_t length = pread(file, bytes.data(), bytes.size(), at);
      if (length <= 0) return;
      const auto end = bytes.begin() + length;
      if (std::search(bytes.begin(), end, std::begin(kMark), std::end(kMark)) != end) {
        report("data of the honest hosts' user");
      }
      at += static_cast<off_t>(kAtOnce);
    }
  }

  const Scenario scenario_;
  std::unique_ptr<live::RawClient> client_;
  fabric::RingConsumer<fabric::Descriptor> rx_;
  fabric::RingProducer<fabric::Descriptor> tx_;
  std::uint64_t steps_ = 0;
};

class BellAttack final : public Attack {
 public:
  explicit BellAttack(const Scenario& scenario) : client_(attach_raw(scenario)) {}
  void step() override {
    for (int n = 0; n < 64; ++n) client_->ring_doorbell();
  }

 private:
  std::unique_ptr<live::RawClient> client_;
};

class ControlAttack final : public Attack {
 public:
  explicit ControlAttack(const Scenario& scenario)
      : port_(attach(scenario)), path_(live::control_path(scenario.socket)), connections_(24) {
    for (int n = 0; n < 240; ++n) {
      requests_ += n % 2 == 0 ? "{\"ask\": \"status\"}\n" : "{\"ask\":  \"status\"}\n";
    }
  }
  void step() override {
    UniqueFd& one = connections_[next_++ % connections_.size()];
    if (!one.is_open() || next_ % 64 == 0) one = connect_at_once(path_, SOCK_STREAM);
    if (send(one.get(), requests_.data(), requests_.size(), MSG_NOSIGNAL) < 0 && errno != EAGAIN) {
      one.reset();
    }
  }

 private:
  std::unique_ptr<fabric::HostPort> port_;
  std::string path_, requests_;
  std::vector<UniqueFd> connections_;
  std::size_t next_ = 0;
};

class SilentClient final : public Attack {
 public:
  explicit SilentClient(const Scenario& scenario)
      : port_(attach(scenario)), path_(scenario.socket), connections_(400) {}
  void step() override {
    connections_[next_++ % connections_.size()] = connect_at_once(path_, SOCK_SEQPACKET);
  }

 private:
  std::unique_ptr<fabric::HostPort> port_;
  std::string path_;
  std::vector<UniqueFd> connections_;
  std::size_t next_ = 0;
};

}  // namespace

std::unique_ptr<Attack> load_a_core(const Scenario& scenario) {
  return std::make_unique<CpuLoad>(scenario);
}
std::unique_ptr<Attack> send_nonsense(const Scenario& scenario) {
  return std::make_unique<RingAttack>(scenario, true);
}
std::unique_ptr<Attack> corrupt_indices(const Scenario& scenario) {
  return std::make_unique<RingAttack>(scenario, false);
}
std::unique_ptr<Attack> corrupt_words(const Scenario& scenario) {
  return std::make_unique<WordAttack>(scenario);
}
std::unique_ptr<Attack> look_for_others_bytes(const Scenario& scenario) {
  return std::make_unique<Spy>(scenario);
}
std::unique_ptr<Attack> ring_for_nothing(const Scenario& scenario) {
  return std::make_unique<BellAttack>(scenario);
}
std::unique_ptr<Attack> request_without_end(const Scenario& scenario) {
  return std::make_unique<ControlAttack>(scenario);
}
std::unique_ptr<Attack> connect_silently(const Scenario& scenario) {
  return std::make_unique<SilentClient>(scenario);
}

}  // namespace cepheus::hostile
