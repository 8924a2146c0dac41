// Connections with other hosts' daemons: dialled or accepted, authenticated, and watched for silence.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "controller/connections/daemon/frame_stream.h"
#include "controller/connections/engine/broker.h"
#include "controller/connections/engine/peer_session.h"

namespace cepheus::connections {

class PeerLinks {
 public:
  // Accepted links without a HELLO so far. The oldest is closed when there are more.
  static constexpr std::size_t kMostStrangers = 64;

  struct Settings {
    wire::Ipv4 host;
    std::string pattern;  // how a host is reached: fill_in()
    std::optional<wire::MrpKey> key;
    std::uint32_t time_limit_ms = 2000;
  };
  // `with_broker` runs the given function, then performs the broker's actions.
  using WithBroker = std::function<void(const std::function<void(wire::Instant, Actions&)>&)>;
  PeerLinks(asio::io_context& io, const Settings& settings, Broker& broker, WithBroker with_broker);

  void accept(Socket socket);
  void dial(LinkId link, wire::Ipv4 host);
  void send(LinkId link, const Message& message);
  // The broker has forgotten it.
  void hang_up(LinkId link);
  void close_all();

 private:
  struct Link {
    PeerSession session;
    std::shared_ptr<FrameStream> stream;  // null: being dialled
    std::optional<LinkId> id;             // as the broker knows it; accepted strangers have none
    std::string name;                     // for errors
    wire::Instant since, last_received, last_sent;
    GiveUp give_up;  // while it is being dialled
  };
  using LinkPtr = std::shared_ptr<Link>;

  PeerSession::Settings session_of(wire::Ipv4 peer) const;
  void start(const LinkPtr& link, Socket socket);
  void on_frame(const LinkPtr& link, std::span<const std::uint8_t> frame);
  void on_ready(const LinkPtr& link);
  void lose(const LinkPtr& link, const std::string& why);
  void send_message(const LinkPtr& link, const Message& message);
  void refuse(const LinkPtr& link, const std::string& why);
  void warn(const Link& link, const std::string& why);
  void watch();
  void on_watch();

  asio::io_context& io_;
  asio::steady_timer watch_;
  bool is_watching_ = false;
  Settings settings_;
  Broker& broker_;
  WithBroker with_broker_;
  std::set<LinkPtr> links_;
  std::map<LinkId, LinkPtr> by_id_;
  wire::Instant next_warning_{};
  std::uint64_t unwarned_ = 0;  // refused since the last warning
};

}  // namespace cepheus::connections
