// cepheus-cmd: one host's programs and the daemons of other hosts, joined by a Broker. One thread.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "controller/connections/daemon/peer_links.h"

namespace cepheus::connections {

struct DaemonSettings {
  PeerLinks::Settings peers;
  std::string listen;  // "HOST:PORT", "unix:PATH"
  std::string socket;  // for programs of this host
  int ready_fd = -1;   // a line is written there once it serves; -1: none
};

class Daemon {
 public:
  static constexpr std::size_t kMostPrograms = 256;
  static constexpr std::size_t kMostProgramsOfUser = 128;

  explicit Daemon(const DaemonSettings& settings);
  ~Daemon();
  // Runs until SIGTERM or SIGINT. kInvalid: it can't listen.
  wire::Result<bool> run();

 private:
  struct Program {
    std::shared_ptr<FrameStream> stream;
    uid_t user = 0;
    bool has_greeted = false;
  };

  wire::Result<bool> listen();
  template <typename Acceptor>
  void accept(Acceptor& acceptor, void (Daemon::*take)(Socket));
  void take_peer(Socket socket) { links_.accept(std::move(socket)); }
  void take_program(Socket socket);
  void on_program_frame(ProgramId id, std::span<const std::uint8_t> frame);
  void refuse_program(FrameStream& stream, const std::string& why);
  void forget_program(ProgramId id);
  void with_broker(const std::function<void(wire::Instant, Actions&)>& work);
  void act(Actions& actions);
  void arm();

  DaemonSettings settings_;
  asio::io_context io_;
  asio::signal_set signals_;
  asio::steady_timer timer_;
  Broker broker_;
  PeerLinks links_;
  asio::local::stream_protocol::acceptor programs_acceptor_, unix_acceptor_;
  asio::ip::tcp::acceptor tcp_acceptor_;
  std::vector<std::string> paths_;  // sockets that are ours to remove
  std::map<ProgramId, Program> programs_;
  ProgramId next_program_ = 1;
};

}  // namespace cepheus::connections
