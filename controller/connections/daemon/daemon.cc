// One thread accepts programs and peers, passes their frames to the broker, and performs its
// actions in the order of Actions. A program is counted by its user, then greeted; a wrong first
// message ends it. Texts for programs are made printable.
//
// Listening refuses a path that another process serves, and replaces a socket that was left over.
// Without free descriptors accepting pauses for kAcceptAgain. A program whose user the kernel does
// not name is refused. At the end the sockets close and their paths are removed.
#include "controller/connections/daemon/daemon.h"

#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>
#include <random>

#include "support/command_line/process.h"
#include "wire/clock.h"
#include "wire/printable.h"

namespace cepheus::connections {
namespace {

// Without free descriptors, accepting waits until some are closed.
constexpr std::chrono::milliseconds kAcceptAgain{100};

using Local = asio::local::stream_protocol;

wire::Result<bool> listen_at(Local::acceptor& acceptor, const std::string& path, mode_t mode) {
  const auto fail = [&](const std::string& why) {
    return wire::invalid("can't listen at " + path + ": " + why);
  };
  struct stat there {};
  if (lstat(path.c_str(), &there) == 0) {
    if (!S_ISSOCK(there.st_mode)) return fail("the path is not a socket: remove it");
    Local::socket probe(acceptor.get_executor());
    asio::error_code gone;
    probe.connect(Local::endpoint(path), gone);
    if (!gone) return fail("another process serves it: stop that, or choose another path");
    unlink(path.c_str());
  }
  asio::error_code error;
  acceptor.open(Local(), error);
  if (!error) acceptor.bind(Local::endpoint(path), error);
  if (!error && chmod(path.c_str(), mode) != 0) {
    error = asio::error_code(errno, asio::error::get_system_category());
  }
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) return fail(error.message());
  return true;
}

wire::Result<bool> listen_at(asio::ip::tcp::acceptor& acceptor, const Address& at) {
  asio::error_code error;
  const auto found =
      asio::ip::tcp::resolver(acceptor.get_executor()).resolve(at.host, at.port, error);
  if (!error) {
    const asio::ip::tcp::endpoint endpoint = found.begin()->endpoint();
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  }
  if (!error) return true;
  return wire::invalid("can't listen at " + at.to_string() + ": " + error.message() +
                       "; choose another --listen");
}

}  // namespace

Daemon::Daemon(const DaemonSettings& settings)
    : settings_(settings),
      signals_(io_),
      timer_(io_),
      broker_(settings.peers.host, std::random_device()()),
      links_(io_, settings.peers, broker_, [this](const auto& work) { with_broker(work); }),
      programs_acceptor_(io_),
      unix_acceptor_(io_),
      tcp_acceptor_(io_) {}

Daemon::~Daemon() {
  for (const std::string& path : paths_) unlink(path.c_str());
}

wire::Result<bool> Daemon::listen() {
  const auto peers = Address::parse(settings_.listen);
  if (!peers) return tl::unexpected(peers.error());
  const auto programs = Address::parse("unix:" + settings_.socket);
  if (!programs) return wire::invalid("--socket: " + programs.error().text);
  if (peers->path.empty()) {
    if (auto done = listen_at(tcp_acceptor_, *peers); !done) return done;
    accept(tcp_acceptor_, &Daemon::take_peer);
  } else {
    // The key decides which peers may connect.
    if (auto done = listen_at(unix_acceptor_, peers->path, 0666); !done) return done;
    paths_.push_back(peers->path);
    accept(unix_acceptor_, &Daemon::take_peer);
  }
  if (auto done = listen_at(programs_acceptor_, settings_.socket, 0666); !done) return done;
  paths_.push_back(settings_.socket);
  accept(programs_acceptor_, &Daemon::take_program);
  return true;
}

wire::Result<bool> Daemon::run() {
  for (const int signal : {SIGINT, SIGTERM}) {
    if (!command_line::is_ignored(signal)) signals_.add(signal);
  }
  std::signal(SIGPIPE, SIG_IGN);  // of the log
  if (auto done = listen(); !done) return done;
  spdlog::info("host {}: programs at {}, daemons at {}, {}", settings_.peers.host.to_string(),
               settings_.socket, settings_.listen,
               settings_.peers.key ? "with the fabric's key" : "without a key");
  if (settings_.ready_fd >= 0) {
    if (write(settings_.ready_fd, "ready\n", 6) != 6) {
      return wire::invalid("can't write to --ready-fd: name an open descriptor");
    }
    ::close(settings_.ready_fd);
  }
  sd_notify(0, "READY=1");
  signals_.async_wait([this](const asio::error_code&, int) { io_.stop(); });
  io_.run();
  links_.close_all();
  for (auto& [id, program] : programs_) program.stream->close();
  return true;
}

template <typename Acceptor>
void Daemon::accept(Acceptor& acceptor, void (Daemon::*take)(Socket)) {
  acceptor.async_accept([this, &acceptor, take](const asio::error_code& error, auto socket) {
    if (!error) {
      (this->*take)(Socket(std::move(socket)));
      return accept(acceptor, take);
    }
    auto later = std::make_shared<asio::steady_timer>(io_, kAcceptAgain);
    later->async_wait(
        [this, later, &acceptor, take](const asio::error_code&) { accept(acceptor, take); });
  });
}

void Daemon::refuse_program(FrameStream& stream, const std::string& why) {
  stream.send(frame_of({.type = MessageType::kRefusal, .text = why}));
  stream.finish();
}

void Daemon::take_program(Socket socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  // Otherwise the program would count as root's.
  const bool is_known =
      getsockopt(socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
  auto stream = std::make_shared<FrameStream>(std::move(socket), kMostRequest);
  if (!is_known) {
    broker_.refusals().add(Refusal::kBadProgram);
    return refuse_program(*stream, "cepheus-cmd can't read the user of this connection");
  }
  const auto of_user =
      std::ranges::count_if(programs_, [&](const auto& p) { return p.second.user == peer.uid; });
  if (programs_.size() >= kMostPrograms ||
      static_cast<std::size_t>(of_user) >= kMostProgramsOfUser) {
    broker_.refusals().add(Refusal::kTooManyPrograms);
    return refuse_program(*stream,
                          "cepheus-cmd serves as many programs as it may: end some of this host");
  }
  const ProgramId id = next_program_++;
  programs_[id] = {stream, peer.uid, false};
  broker_.program_came(id, static_cast<std::uint32_t>(peer.pid), peer.uid);
  stream->start([this, id](std::span<const std::uint8_t> frame) { on_program_frame(id, frame); },
                [this, id](FrameStream::End how, const std::string&) {
                  if (how == FrameStream::End::kTooLong) {
                    broker_.refusals().add(Refusal::kBadProgram);
                  }
                  if (how == FrameStream::End::kNotReading) {
                    broker_.refusals().add(Refusal::kNotReading);
                  }
                  forget_program(id);
                });
}

void Daemon::on_program_frame(ProgramId id, std::span<const std::uint8_t> frame) {
  const auto entry = programs_.find(id);
  if (entry == programs_.end()) return;
  Program& program = entry->second;
  const auto message = Message::parse(frame);
  const auto refuse = [&](const std::string& why) {
    broker_.refusals().add(Refusal::kBadProgram);
    refuse_program(*program.stream, why);
    forget_program(id);
  };
  if (!message) {
    return refuse("a message is not of cepheus-cmd's protocol: use libcepheus-connections");
  }
  if (!program.has_greeted) {
    if (message->type != MessageType::kProgram || message->version != kVersion) {
      return refuse("cepheus-cmd speaks version " + std::to_string(kVersion) +
                    " of its protocol: install one release of daemon and library");
    }
    program.has_greeted = true;
    return;
  }
  with_broker([&](wire::Instant now, Actions& out) {
    if (message->type != MessageType::kStatusRequest) {
      return broker_.on_request(now, id, *message, out);
    }
    out.to_programs.push_back({id,
                               {.type = MessageType::kStatus,
                                .status = broker_.status(now).dump(
                                    -1, ' ', true, nlohmann::json::error_handler_t::replace)}});
  });
}

void Daemon::forget_program(ProgramId id) {
  programs_.erase(id);
  with_broker([&](wire::Instant now, Actions& out) { broker_.program_left(now, id, out); });
}

void Daemon::with_broker(const std::function<void(wire::Instant, Actions&)>& work) {
  Actions actions;
  work(wire::monotonic_now(), actions);
  broker_.check_consistent();
  act(actions);
  arm();
}

void Daemon::act(Actions& actions) {
  for (const auto& [link, host] : actions.dials) links_.dial(link, host);
  for (const auto& [link, message] : actions.to_peers) links_.send(link, message);
  for (auto& [program, message] : actions.to_programs) {
    const auto entry = programs_.find(program);
    if (entry == programs_.end()) continue;
    message.text = wire::printable(message.text);  // another host's, perhaps, and people read it
    entry->second.stream->send(frame_of(message));
  }
  for (const LinkId link : actions.hang_ups) links_.hang_up(link);
  for (const ProgramId program : actions.drops) {
    const auto entry = programs_.find(program);
    if (entry == programs_.end()) continue;
    entry->second.stream->finish();
    programs_.erase(entry);
  }
}

void Daemon::arm() {
  const wire::Instant deadline = broker_.deadline();
  if (deadline == wire::kNever) {
    timer_.cancel();
    return;
  }
  timer_.expires_at(std::chrono::steady_clock::time_point(deadline.time_since_epoch()));
  timer_.async_wait([this](const asio::error_code& error) {
    if (error) return;
    with_broker([this](wire::Instant now, Actions& out) { broker_.on_timer(now, out); });
  });
}

}  // namespace cepheus::connections
