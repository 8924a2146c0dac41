// Attaching: connect, send the request, wait for the answer, map segment and pools, watch the
// socket's end. An answer "again" is repeated every 5 ms. A fabric that visibly runs gets
// busy_timeout, any other timeout.
//
// Values from the fabric are checked before use: geometry, lengths, offsets, slot numbers. Wrong
// ones are counted and skipped. The rings carry frames without a system call; only a sleeping
// switch is rung. Payload slots are used again last in, first out, while their memory is in a
// cache.
#include "switch-emulator/ports/host_port.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <string_view>
#include <vector>

#include "switch-emulator/ports/epoll_wait.h"
#include "switch-emulator/ports/handshake.h"
#include "switch-emulator/ports/port_segment.h"

namespace cepheus::fabric {
namespace {

using std::chrono::milliseconds;
using wire::ErrorCode;

constexpr std::uint32_t kNoSlot = ~std::uint32_t{0};

wire::Result<UniqueFd> connect_to(const std::string& path, milliseconds timeout) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return wire::invalid("fabric socket path '" + path + "' must have 1 to " +
                         std::to_string(sizeof address.sun_path - 1) + " characters");
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd.is_open()) {
    return wire::call_failed("can't make a socket");
  }
  timeval limit{};  // a fabric that is busy with other clients has a backlog of them
  limit.tv_sec = timeout.count() / 1000;
  limit.tv_usec = timeout.count() % 1000 * 1000;
  if (setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) != 0) {
    return wire::call_failed("can't limit the time to connect to " + path);
  }
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return wire::unavailable("no fabric at " + path + " (" + std::strerror(errno) +
                             "): start one with cepheus-switch --fabric " + path);
  }
  return fd;
}

// Whether the process at the other end visibly runs: neither stopped, nor gone, nor in its own PID
// namespace.
bool is_peer_running(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.pid <= 0) return false;
  std::ifstream file("/proc/" + std::to_string(peer.pid) + "/stat");
  std::string stat;
  std::getline(file, stat);  // "PID (NAME) STATE ...": a name may contain anything
  const std::size_t end = stat.rfind(')');
  return end != std::string::npos && end + 2 < stat.size() &&
         std::string_view("TtZXx").find(stat[end + 2]) == std::string_view::npos;
}

wire::Result<Message> await_message(int socket, const HostPort::Options& options) {
  const auto began = std::chrono::steady_clock::now();
  auto until = began + options.timeout;
  for (;;) {
    if (auto message = receive_message(socket)) return std::move(*message);
    const auto now = std::chrono::steady_clock::now();
    if (now > until && now < began + options.busy_timeout && is_peer_running(socket)) {
      until = std::min(now + options.timeout, began + options.busy_timeout);
    }
    const auto left = std::chrono::duration_cast<milliseconds>(until - now);
    if (left.count() < 0) {
      const auto waited = std::chrono::duration_cast<milliseconds>(now - began);
      return wire::unavailable("the fabric at " + options.fabric + " did not answer within " +
                               std::to_string(waited.count()) +
                               " ms: is its process stopped, or the machine too busy "
                               "(CEPHEUS_ATTACH_TIMEOUT_MS)?");
    }
    pollfd waiting{socket, POLLIN, 0};
    if (poll(&waiting, 1, static_cast<int>(left.count()) + 1) < 0 && errno != EINTR) {
      return wire::call_failed("can't wait for the fabric at " + options.fabric);
    }
  }
}

// The error for a Welcome that grants nothing.
tl::unexpected<wire::Error> refusal(const Welcome& welcome, const std::string& path) {
  if (welcome.version != kHandshakeVersion) {
    return wire::unavailable("the fabric at " + path + " has port protocol " +
                             std::to_string(welcome.version) + ", this library " +
                             std::to_string(kHandshakeVersion) +
                             ": use switch and library of one Cepheus version");
  }
  const bool is_theirs =
      welcome.status == WelcomeStatus::kFailed || welcome.status == WelcomeStatus::kAgain;
  return wire::fail(is_theirs ? ErrorCode::kUnavailable : ErrorCode::kRefused, welcome.text);
}

struct PortAnswer {
  UniqueFd socket;
  Welcome welcome;
  std::vector<UniqueFd> fds;
};

// One connection's AttachRequest, and the fabric's answer.
wire::Result<PortAnswer> request_port(const HostPort::Options& options) {
  auto socket = connect_to(options.fabric, options.timeout);
  if (!socket) return tl::unexpected(socket.error());
  const AttachRequest hello{kHandshakeVersion, options.host, options.or_any, options.reservation};
  // A fabric that refuses before it has read closes the socket: its answer can still be read.
  send_message(socket->get(), encode(hello));
  auto answer = await_message(socket->get(), options);
  if (!answer) return tl::unexpected(answer.error());
  const auto welcome = decode_welcome(answer->data);
  if (!welcome) {
    return wire::unavailable(answer->data.empty()
                                 ? "the fabric at " + options.fabric +
                                       " closed the connection: is it ending?"
                                 : "the program at " + options.fabric + " is not a Cepheus fabric");
  }
  return PortAnswer{std::move(*socket), *welcome, std::move(answer->fds)};
}

}  // namespace

struct HostPort::State {
  pid_t process = getpid();
  HostIdentity identity;
  UniqueFd socket;
  UniqueFd switch_doorbell;
  UniqueFd own_doorbell;  // an epoll descriptor: readable once the switch has rung, or is gone
  PortSegment segment;
  Mapping pool;      // all payloads, for reading
  Mapping own_area;  // of this host, for writing
  PoolGeometry geometry;
  std::size_t own_offset = 0;  // of own_area in the pool

  RingProducer<Descriptor> tx;
  RingConsumer<Descriptor> rx;
  RingConsumer<std::uint32_t> returns;
  // Last returned on top, because its memory is still in a cache.
  std::vector<std::uint32_t> free_slots;
  std::uint32_t current_slot = kNoSlot;  // offered by tx_buffer()
  std::uint64_t invalid_frames = 0;
  mutable bool connected = true;

  wire::Result<void> set_up(const Welcome& welcome, std::vector<UniqueFd> fds);
  bool set_payload(std::uint64_t offset, wire::Frame& frame) const;
  void take_returned_slots();
  std::uint64_t offset_of(const wire::Frame& frame) const;
  void ring_switch() const { eventfd_write(switch_doorbell.get(), 1); }
};

wire::Result<void> HostPort::State::set_up(const Welcome& welcome, std::vector<UniqueFd> fds) {
  if (!welcome.pool.is_sane() || welcome.area >= welcome.pool.areas ||
      welcome.identity.mtu > welcome.pool.slot_bytes) {
    return wire::unavailable("the fabric offers an invalid port");
  }
  identity = welcome.identity;
  geometry = welcome.pool;
  own_offset = welcome.area * geometry.area_bytes();
  const int pool_fd = fds[kPoolFd].get();

  auto mapped_segment = PortSegment::map(fds[kSegmentFd].get(), geometry.slots_per_area);
  if (!mapped_segment) return tl::unexpected(mapped_segment.error());
  auto all = Mapping::map(pool_fd, 0, geometry.pool_bytes(), Mapping::Access::kRead);
  if (!all) return tl::unexpected(all.error());
  auto own = Mapping::map(pool_fd, own_offset, geometry.area_bytes(), Mapping::Access::kReadWrite);
  if (!own) return tl::unexpected(own.error());

  segment = std::move(*mapped_segment);
  pool = std::move(*all);
  own_area = std::move(*own);
  tx = RingProducer<Descriptor>(segment.tx());
  rx = RingConsumer<Descriptor>(segment.rx());
  returns = RingConsumer<std::uint32_t>(segment.returns());
  free_slots.reserve(geometry.slots_per_area);
  switch_doorbell = std::move(fds[kSwitchDoorbellFd]);
  own_doorbell = std::move(fds[kClientDoorbellFd]);

  // The same descriptor reports the socket's end, if the fabric dies without ringing.
  epoll_event socket_event{EPOLLRDHUP, {}};
  if (epoll_ctl(own_doorbell.get(), EPOLL_CTL_ADD, socket.get(), &socket_event) != 0) {
    return wire::call_failed("can't wait on the port");
  }
  return {};
}

wire::Result<std::unique_ptr<HostPort>> HostPort::attach(const Options& options) {
  // A fabric that answers "again" runs.
  const auto until =
      std::chrono::steady_clock::now() + std::max(options.timeout, options.busy_timeout);
  auto answer = request_port(options);
  while (answer && answer->welcome.status == WelcomeStatus::kAgain &&
         std::chrono::steady_clock::now() < until) {
    constexpr int kPauseMs = 5;
    poll(nullptr, 0, kPauseMs);
    answer = request_port(options);
  }
  if (!answer) return tl::unexpected(answer.error());
  const Welcome& welcome = answer->welcome;
  auto state = std::make_unique<State>();
  state->socket = std::move(answer->socket);
  if (welcome.version != kHandshakeVersion || welcome.status != WelcomeStatus::kGranted) {
    return refusal(welcome, options.fabric);
  }
  if (answer->fds.size() != kGrantedFds) {
    return wire::unavailable(
        "the fabric's descriptors did not arrive: raise the limit of open files");
  }
  if (auto done = state->set_up(welcome, std::move(answer->fds)); !done) {
    return tl::unexpected(done.error());
  }
  return std::unique_ptr<HostPort>(new HostPort(std::move(state)));
}

HostPort::HostPort(std::unique_ptr<State> state) : state_(std::move(state)) {}

HostPort::~HostPort() {
  // A forked child's copy ends silently; only the process that attached ends the attachment.
  if (state_ != nullptr && state_->process == getpid()) shutdown(state_->socket.get(), SHUT_RDWR);
}

const HostIdentity& HostPort::identity() const { return state_->identity; }

bool HostPort::State::set_payload(std::uint64_t offset, wire::Frame& frame) const {
  if (offset > pool.size() || frame.payload_len > pool.size() - offset) return false;
  frame.set_external_payload({pool.data() + offset, frame.payload_len}, wire::kNoBuffer);
  return true;
}

bool HostPort::receive(wire::Frame& frame) {
  State& s = *state_;
  while (s.rx.available() > 0) {
    s.rx.prefetch(1);
    Descriptor descriptor;
    s.rx.take(descriptor);
    if (read_descriptor(descriptor, frame) &&
        (descriptor.payload == Descriptor::kInline || s.set_payload(descriptor.payload, frame))) {
      return true;
    }
    ++s.invalid_frames;
  }
  return false;
}

void HostPort::release() {
  // No thread sleeps for it: the switch checks before it delivers.
  if (state_->rx.has_unreleased()) state_->rx.release();
}

void HostPort::State::take_returned_slots() {
  while (returns.available() > 0) {
    std::uint32_t slot = kNoSlot;
    returns.take(slot);
    const bool plausible =
        slot < geometry.slots_per_area && free_slots.size() < geometry.slots_per_area;
    if (plausible) {
      free_slots.push_back(slot);
    } else {
      ++invalid_frames;
    }
  }
  if (returns.has_unreleased()) returns.release();
}

std::span<std::uint8_t> HostPort::tx_buffer() {
  State& s = *state_;
  if (s.current_slot == kNoSlot) {
    s.take_returned_slots();
    if (s.free_slots.empty()) return {};
    s.current_slot = s.free_slots.back();
    s.free_slots.pop_back();
  }
  return {s.own_area.data() + std::size_t{s.current_slot} * s.geometry.slot_bytes,
          s.geometry.slot_bytes};
}

std::size_t HostPort::free_entries() const { return state_->tx.free_entries(); }

std::uint64_t HostPort::State::offset_of(const wire::Frame& frame) const {
  [[maybe_unused]] const std::uint8_t* slot =
      own_area.data() + std::size_t{current_slot} * geometry.slot_bytes;
  assert(current_slot != kNoSlot && frame.external >= slot &&
         frame.external + frame.payload_len <= slot + geometry.slot_bytes);
  return own_offset + static_cast<std::size_t>(frame.external - own_area.data());
}

void HostPort::send(wire::Frame& frame) {
  State& s = *state_;
  if (s.tx.free_entries() == 0) return;
  std::uint64_t payload = Descriptor::kInline;
  if (frame.external != nullptr && frame.payload_len > 0) {
    payload = s.offset_of(frame);
    s.current_slot = kNoSlot;  // belongs to the switch until it comes back
  }
  write_descriptor(frame, payload, s.tx.next());
  s.tx.advance();
}

void HostPort::flush() {
  State& s = *state_;
  if (!s.tx.has_unpublished()) return;
  s.tx.publish();
  if (s.segment.switch_sleeps().take(kWakeOnFrames)) s.ring_switch();
}

int HostPort::wait_fd() const { return state_->own_doorbell.get(); }

bool HostPort::arm(WaitFor what) {
  State& s = *state_;
  std::uint32_t reasons = what == WaitFor::kBatch ? kWakeOnBatch : kWakeOnFrames;
  const bool wants_space = free_entries() == 0;
  const bool wants_slot = tx_buffer().empty();
  if (wants_space || wants_slot) reasons |= kWakeOnSpace;
  s.segment.client_sleeps().send_request(reasons);
  const bool something = s.rx.available() > 0 || (wants_space && free_entries() > 0) ||
                         (wants_slot && !tx_buffer().empty());
  if (something) s.segment.client_sleeps().withdraw();
  return !something;
}

void HostPort::disarm() {
  State& s = *state_;
  withdraw();
  std::array<epoll_event, 2> rung;
  epoll_wait(s.own_doorbell.get(), rung.data(), rung.size(), 0);
}

void HostPort::withdraw() { state_->segment.client_sleeps().withdraw(); }

bool HostPort::sleep(int wait_fd, wire::Duration most) {
  std::array<epoll_event, 2> rung;
  return wait_for_events(wait_fd, rung, most) >= 0;
}

bool HostPort::is_connected() const {
  const State& s = *state_;
  if (!s.connected) return false;
  pollfd end{s.socket.get(), POLLRDHUP, 0};
  if (poll(&end, 1, 0) > 0) s.connected = false;
  return s.connected;
}

std::uint64_t HostPort::invalid_frames() const { return state_->invalid_frames; }

void HostPort::abandon() { state_ = nullptr; }

void HostPort::isolate() {
  state_->segment.isolate();
  state_->pool.isolate();
  state_->own_area.isolate();
}

}  // namespace cepheus::fabric
