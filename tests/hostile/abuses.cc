#include "tests/hostile/abuses.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <random>

#include "switch-emulator/live/control_protocol.h"

namespace cepheus::hostile {
namespace {

using fabric::UniqueFd;

// Without waiting; it may fail.
UniqueFd connect_at_once(const std::string& path, int type) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  UniqueFd fd(socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  static_cast<void>(connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address));
  return fd;
}

class Hog final : public Conduct {
 public:
  explicit Hog(const Place& place) : port_(attach(place)) {}
  void step() override {
    for (int n = 0; n < 20'000; ++n) asm volatile("" ::: "memory");
  }

 private:
  std::unique_ptr<fabric::HostPort> port_;
};

class RingAbuse final : public Conduct {
 public:
  RingAbuse(const Place& place, bool has_true_indices)
      : place_(place), has_true_indices_(has_true_indices) {
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
    client_ = attach_raw(place_);
    const auto tx = client_->segment().tx();
    for (std::uint32_t n = 0; n < tx.capacity; ++n) {
      auto* bytes = reinterpret_cast<std::uint8_t*>(&tx.entries[n]);
      std::generate(bytes, bytes + sizeof(fabric::Descriptor),
                    [&] { return static_cast<std::uint8_t>(random_()); });
    }
  }

  const Place place_;
  const bool has_true_indices_;
  std::mt19937 random_{7};
  std::unique_ptr<live::RawClient> client_;
};

class BellAbuse final : public Conduct {
 public:
  explicit BellAbuse(const Place& place) : client_(attach_raw(place)) {}
  void step() override {
    for (int n = 0; n < 64; ++n) client_->ring_doorbell();
  }

 private:
  std::unique_ptr<live::RawClient> client_;
};

class ControlAbuse final : public Conduct {
 public:
  explicit ControlAbuse(const Place& place)
      : port_(attach(place)), path_(live::control_path(place.socket)), connections_(24) {
    for (int n = 0; n < 240; ++n) {
      questions_ += n % 2 == 0 ? "{\"ask\": \"status\"}\n" : "{\"ask\":  \"status\"}\n";
    }
  }
  void step() override {
    UniqueFd& one = connections_[next_++ % connections_.size()];
    if (!one.is_open() || next_ % 64 == 0) one = connect_at_once(path_, SOCK_STREAM);
    if (send(one.get(), questions_.data(), questions_.size(), MSG_NOSIGNAL) < 0 &&
        errno != EAGAIN) {
      one.reset();
    }
  }

 private:
  std::unique_ptr<fabric::HostPort> port_;
  std::string path_, questions_;
  std::vector<UniqueFd> connections_;
  std::size_t next_ = 0;
};

class Stranger final : public Conduct {
 public:
  explicit Stranger(const Place& place)
      : port_(attach(place)), path_(place.socket), connections_(400) {}
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

std::unique_ptr<Conduct> burn_a_core(const Place& place) { return std::make_unique<Hog>(place); }
std::unique_ptr<Conduct> send_nonsense(const Place& place) {
  return std::make_unique<RingAbuse>(place, true);
}
std::unique_ptr<Conduct> lie_about_indices(const Place& place) {
  return std::make_unique<RingAbuse>(place, false);
}
std::unique_ptr<Conduct> ring_for_nothing(const Place& place) {
  return std::make_unique<BellAbuse>(place);
}
std::unique_ptr<Conduct> ask_without_end(const Place& place) {
  return std::make_unique<ControlAbuse>(place);
}
std::unique_ptr<Conduct> come_without_a_word(const Place& place) {
  return std::make_unique<Stranger>(place);
}

}  // namespace cepheus::hostile
