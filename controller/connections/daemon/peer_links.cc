// States of a link: being dialled, greeting, ready. An accepted one gets its number from the broker
// when it is ready. Each failure ends in lose(), which reports it to the broker once. One timer
// watches all links: silence ends a link, and PINGs leave often enough for the other end's time
// limit.
//
// Bounds: kMostStrangers links without a HELLO, of which the oldest goes; one warning each
// kBetweenWarnings, with the number of those left out.
#include "controller/connections/daemon/peer_links.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <random>

#include "wire/clock.h"
#include "wire/printable.h"

namespace cepheus::connections {
namespace {

// PINGs in the time that an end bears silence: three may be late.
constexpr int kPingsInTimeLimit = 4;
// Strangers must not fill the journal: the status counts all that were refused.
constexpr wire::Duration kBetweenWarnings = std::chrono::seconds(1);

Nonce random_nonce() {
  Nonce nonce;
  std::random_device random;
  for (std::uint8_t& byte : nonce) byte = static_cast<std::uint8_t>(random());
  return nonce;
}

wire::Duration milliseconds(std::uint32_t n) { return std::chrono::milliseconds(n); }

}  // namespace

PeerLinks::PeerLinks(asio::io_context& io, const Settings& settings, Broker& broker,
                     WithBroker with_broker)
    : io_(io),
      watch_(io),
      settings_(settings),
      broker_(broker),
      with_broker_(std::move(with_broker)) {}

PeerSession::Settings PeerLinks::session_of(wire::Ipv4 peer) const {
  return {.is_dialler = !peer.is_unset(),
          .host = settings_.host,
          .peer = peer,
          .nonce = random_nonce(),
          .time_limit_ms = settings_.time_limit_ms,
          .key = settings_.key ? &*settings_.key : nullptr};
}

void PeerLinks::accept(Socket socket) {
  const auto is_stranger = [](const LinkPtr& l) { return !l->id; };
  if (static_cast<std::size_t>(std::ranges::count_if(links_, is_stranger)) >= kMostStrangers) {
    LinkPtr oldest;
    for (const LinkPtr& l : links_) {
      if (is_stranger(l) && (!oldest || l->since < oldest->since)) oldest = l;
    }
    broker_.refusals().add(Refusal::kTooManyPeers);
    oldest->stream->close();
    links_.erase(oldest);
  }
  auto link = std::make_shared<Link>(
      Link{PeerSession(session_of({})), nullptr, {}, "a stranger", {}, {}, {}, {}});
  start(link, std::move(socket));
}

void PeerLinks::dial(LinkId id, wire::Ipv4 host) {
  const std::string text = fill_in(settings_.pattern, host);
  auto link = std::make_shared<Link>(
      Link{PeerSession(session_of(host)), nullptr, id, text, {}, {}, {}, {}});
  link->since = link->last_received = link->last_sent = wire::monotonic_now();
  links_.insert(link);
  by_id_[id] = link;
  watch();
  const auto address = Address::parse(text);
  if (!address) {
    asio::post(io_, [this, link, why = address.error().text] { lose(link, "--peers: " + why); });
    return;
  }
  const auto done = [this, link](const asio::error_code& error, Socket socket) {
    link->give_up = nullptr;
    if (!links_.contains(link)) return;  // it took too long
    if (error) {
      return lose(link, "no cepheus-cmd answers at " + link->name + " (" + error.message() +
                            "): start one there");
    }
    start(link, std::move(socket));
  };
  link->give_up = connections::dial(io_, *address, done);
}

void PeerLinks::start(const LinkPtr& link, Socket socket) {
  link->stream = std::make_shared<FrameStream>(std::move(socket), kMostRequest);
  link->since = link->last_received = link->last_sent = wire::monotonic_now();
  links_.insert(link);
  watch();
  link->stream->send(link->session.hello());
  link->stream->start([this, link](std::span<const std::uint8_t> frame) { on_frame(link, frame); },
                      [this, link](FrameStream::End how, const std::string& why) {
                        if (how == FrameStream::End::kTooLong)
                          broker_.refusals().add(Refusal::kBadPeer);
                        if (how == FrameStream::End::kNotReading)
                          broker_.refusals().add(Refusal::kNotReading);
                        lose(link, "the connection with its cepheus-cmd has ended (" + why + ")");
                      });
}

void PeerLinks::on_frame(const LinkPtr& link, std::span<const std::uint8_t> frame) {
  link->last_received = wire::monotonic_now();
  const bool sent_hello = link->session.can_send(), was_ready = link->session.is_ready();
  auto message = link->session.open(frame);
  if (!message) {
    const bool is_theirs = message.error().code == wire::ErrorCode::kRefused;
    broker_.refusals().add(was_ready && !is_theirs ? Refusal::kBadPeer : Refusal::kPeerRefused);
    return refuse(link, message.error().text);
  }
  if (!sent_hello) return send_message(link, about(MessageType::kReady, 0));
  if (!was_ready) return on_ready(link);
  with_broker_([&](wire::Instant now, Actions& out) {
    if (link->id) broker_.on_peer(now, *link->id, *message, out);
  });
}

void PeerLinks::on_ready(const LinkPtr& link) {
  link->name = link->session.peer().to_string();
  bool is_taken = true;
  with_broker_([&](wire::Instant now, Actions& out) {
    if (link->id) return broker_.link_is_up(now, *link->id, out);
    link->id = broker_.link_came(now, link->session.peer());
    is_taken = link->id.has_value();
    if (is_taken) by_id_[*link->id] = link;
  });
  if (!is_taken) {
    return refuse(link, "the daemon of " + settings_.host.to_string() +
                            " has as many connections, in all or with " + link->name +
                            ", as it may have: try again later");
  }
  on_watch();  // its PINGs begin now, not when the timer that was set for its greeting ends
}

void PeerLinks::send(LinkId id, const Message& message) {
  const auto link = by_id_.find(id);
  if (link != by_id_.end()) send_message(link->second, message);
}

void PeerLinks::send_message(const LinkPtr& link, const Message& message) {
  link->last_sent = wire::monotonic_now();
  link->stream->send(link->session.seal(message));
}

void PeerLinks::refuse(const LinkPtr& link, const std::string& why) {
  link->stream->send(link->session.refusal(why));
  link->stream->finish();
  warn(*link, why);
  lose(link, why);
}

// The text may be the other end's: it is made fit for a journal.
void PeerLinks::warn(const Link& link, const std::string& why) {
  const wire::Instant now = wire::monotonic_now();
  if (now < next_warning_) {
    ++unwarned_;
    return;
  }
  const std::uint64_t others = std::exchange(unwarned_, 0);
  spdlog::warn("{}: {}{}", link.name, wire::printable(why),
               others == 0 ? "" : " (and " + std::to_string(others) + " refused before it)");
  next_warning_ = now + kBetweenWarnings;
}

void PeerLinks::lose(const LinkPtr& link, const std::string& why) {
  if (links_.erase(link) == 0) return;
  if (link->give_up) link->give_up();
  if (!link->id) return;
  by_id_.erase(*link->id);
  with_broker_(
      [&](wire::Instant now, Actions& out) { broker_.link_is_down(now, *link->id, why, out); });
}

void PeerLinks::hang_up(LinkId id) {
  const auto entry = by_id_.find(id);
  if (entry == by_id_.end()) return;
  const LinkPtr link = entry->second;
  by_id_.erase(entry);
  links_.erase(link);
  if (link->stream) link->stream->finish();
  if (link->give_up) link->give_up();
}

void PeerLinks::close_all() {
  watch_.cancel();
  for (const LinkPtr& link : links_) {
    if (link->stream) link->stream->close();
    if (link->give_up) link->give_up();
  }
  links_.clear();
  by_id_.clear();
}

void PeerLinks::watch() {
  if (is_watching_) return;
  is_watching_ = true;
  on_watch();
}

void PeerLinks::on_watch() {
  const wire::Instant now = wire::monotonic_now();
  std::vector<LinkPtr> silent;
  wire::Instant next = wire::kNever;
  for (const LinkPtr& link : links_) {
    const wire::Instant ends = link->last_received + milliseconds(settings_.time_limit_ms);
    if (ends <= now) {
      silent.push_back(link);
      continue;
    }
    next = std::min(next, ends);
    if (!link->session.is_ready()) continue;
    const wire::Duration pause =
        milliseconds(link->session.peers_time_limit_ms()) / kPingsInTimeLimit;
    if (link->last_sent + pause <= now) send_message(link, about(MessageType::kPing, 0));
    next = std::min(next, link->last_sent + pause);
  }
  for (const LinkPtr& link : silent) {
    if (link->stream) link->stream->close();
    lose(link, "its cepheus-cmd has been silent for " + std::to_string(settings_.time_limit_ms) +
                   " ms: check that the host runs");
  }
  is_watching_ = !links_.empty();
  if (!is_watching_) return;
  watch_.expires_at(std::chrono::steady_clock::time_point(
      std::min(next, now + milliseconds(settings_.time_limit_ms)).time_since_epoch()));
  watch_.async_wait([this](const asio::error_code& error) {
    if (!error) on_watch();
  });
}

}  // namespace cepheus::connections
