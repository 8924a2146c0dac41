// Programs, links and timers; broker_sender.cc and broker_receiver.cc have the steps of
// connections. A link's direction decides which messages it may bring; any other one hangs it up. A
// program or a link that goes ends each of its connections; a link is removed first, so that
// nothing is sent to it.
//
// Timers: connections without an outcome, and dialled links without connections (kIdleLink).
// check_consistent() compares every table with the others.
#include "controller/connections/engine/broker.h"

#include <algorithm>
#include <cassert>

namespace cepheus::connections {

Broker::Broker(wire::Ipv4 host, std::uint32_t seed)
    : host_(host), virtual_qpns_(mrp::kDaemonQpns, seed) {}

void Broker::program_came(ProgramId program, std::uint32_t pid, std::uint32_t user) {
  programs_[program].pid = pid;
  programs_[program].user = user;
}

void Broker::program_left(wire::Instant now, ProgramId program, Actions& out) {
  const auto entry = programs_.find(program);
  if (entry == programs_.end()) return;
  const Program left = entry->second;
  for (const std::string& service : left.services) services_.erase(service);
  for (const ConnectionId id : left.outgoing) {
    end_outgoing(now, outgoing_.find(id), "the sending program has ended", out);
  }
  for (const ConnectionId id : left.incoming) {
    end_incoming(incoming_.find(id), "its program has ended", out);
  }
  programs_.erase(program);
}

void Broker::on_request(wire::Instant now, ProgramId program, const Message& request,
                        Actions& out) {
  if (!programs_.contains(program)) return;  // dropped: its earlier messages have no effect
  switch (request.type) {
    case MessageType::kListen:
      return listen(program, request.service, out);
    case MessageType::kConnect:
      return connect(now, program, request, out);
    case MessageType::kAccept:
    case MessageType::kRefuse:
      return answer(program, request, out);
    case MessageType::kClose:
      return close(now, program, request.connection, out);
    default:
      refusals_.add(Refusal::kBadProgram);
      return drop(now, program, "a program can't send that message: use libcepheus-connections",
                  out);
  }
}

void Broker::close(wire::Instant now, ProgramId program, ConnectionId connection, Actions& out) {
  const Program& p = programs_.at(program);
  if (p.outgoing.contains(connection)) {
    const auto entry = outgoing_.find(connection);
    if (entry->second.is_connected) {
      end_outgoing(now, entry, "the sending program has closed it", out);
    } else {
      fail(now, entry, {}, "the sending program has closed it", out);
    }
  } else if (p.incoming.contains(connection)) {
    end_incoming(incoming_.find(connection), "its program has closed the connection", out);
  } else {
    refusals_.add(Refusal::kLate);
  }
}

void Broker::drop(wire::Instant now, ProgramId program, const std::string& why, Actions& out) {
  out.to_programs.push_back({program, {.type = MessageType::kRefusal, .text = why}});
  out.drops.push_back(program);
  program_left(now, program, out);
}

std::optional<LinkId> Broker::link_came(wire::Instant now, wire::Ipv4 host) {
  const auto is_of_host = [&](const auto& entry) {
    return !entry.second.is_dialled && entry.second.host == host;
  };
  const auto of_host = static_cast<std::size_t>(std::ranges::count_if(links_, is_of_host));
  if (links_.size() - dialled_.size() >= kMostLinks || of_host >= kMostLinksOfHost) {
    refusals_.add(Refusal::kTooManyPeers);
    return std::nullopt;
  }
  const LinkId id = next_link_++;
  Link& link = links_[id];
  link.host = host;
  link.is_up = true;
  link.since = now;
  return id;
}

void Broker::link_is_down(wire::Instant now, LinkId id, const std::string& why, Actions& out) {
  const auto entry = links_.find(id);
  if (entry == links_.end()) return;
  const Link link = entry->second;
  // The dialler hangs up links that have no connections: its daemon goes on.
  const bool was_idle = !link.is_dialled && link.connections.empty();
  if (!was_idle) refusals_.add(link.is_up ? Refusal::kPeerLost : Refusal::kUnreachable);
  // Removed first, so that no message goes to it.
  if (link.is_dialled) dialled_.erase(link.host);
  links_.erase(entry);
  for (const ConnectionId connection : link.connections) {
    if (!link.is_dialled) {
      incoming_ended(incoming_.find(connection), why, out);
      continue;
    }
    const auto sent = outgoing_.find(connection);
    auto& branches = sent->second.branches;
    const auto branch =
        std::ranges::find_if(branches, [&](const Branch& b) { return b.link == id; });
    branch_ended(now, sent, *branch, why, out);
  }
}

void Broker::hang_up(wire::Instant now, LinkId link, Actions& out) {
  out.hang_ups.push_back(link);
  refusals_.add(Refusal::kBadPeer);
  link_is_down(now, link, "its cepheus-cmd broke the protocol: install one release everywhere",
               out);
}

void Broker::on_peer(wire::Instant now, LinkId id, const Message& message, Actions& out) {
  const auto entry = links_.find(id);
  if (entry == links_.end()) return;
  const bool is_dialled = entry->second.is_dialled;
  switch (message.type) {
    case MessageType::kPing:
      return;
    case MessageType::kOffer:
      if (is_dialled) break;
      return on_offer(now, id, message, out);
    case MessageType::kCancel:
    case MessageType::kEstablished:
    case MessageType::kClosed:
      if (is_dialled) break;
      return on_news(id, message, out);
    case MessageType::kAccept:
    case MessageType::kRefuse:
    case MessageType::kLeft:
      if (!is_dialled) break;
      return on_answer(now, id, message, out);
    default:
      break;
  }
  hang_up(now, id, out);
}

void Broker::on_timer(wire::Instant now, Actions& out) {
  while (!pending_.empty() && pending_.begin()->first <= now) {
    const ConnectionId id = pending_.begin()->second;
    refusals_.add(Refusal::kTimedOut);
    if (const auto offer = incoming_.find(id); offer != incoming_.end()) {
      expire(offer, out);
      continue;
    }
    const auto entry = outgoing_.find(id);
    const auto& branches = entry->second.branches;
    const auto late = std::ranges::find_if(
        branches, [](const Branch& b) { return b.state != BranchState::kAccepted; });
    fail(now, entry, late->member.host,
         late->state == BranchState::kDialling
             ? "its cepheus-cmd did not answer in time: check that it runs"
             : "no answer in time from the program of service '" + entry->second.service +
                   "': check that it takes its events",
         out);
  }
  hang_up_idle(now, out);
}

void Broker::hang_up_idle(wire::Instant until, Actions& out) {
  for (auto link = links_.begin(); link != links_.end();) {
    if (link->second.idle_until > until) {
      ++link;
      continue;
    }
    out.hang_ups.push_back(link->first);
    dialled_.erase(link->second.host);
    link = links_.erase(link);
  }
}

wire::Instant Broker::deadline() const {
  wire::Instant first = pending_.empty() ? wire::kNever : pending_.begin()->first;
  for (const auto& [id, link] : links_) first = std::min(first, link.idle_until);
  return first;
}

void Broker::check_consistent() const {
#ifndef NDEBUG
  std::size_t open_connections = 0, pending = 0, offers = 0;
  for (const auto& [id, link] : links_) {
    open_connections += link.connections.size();
    assert(!link.is_dialled || dialled_.at(link.host) == id);
    assert(link.users.size() == (link.is_dialled ? link.connections.size() : 0));
    assert((link.idle_until != wire::kNever) == (link.is_dialled && link.connections.empty()));
  }
  for (const auto& [id, c] : outgoing_) {
    assert(programs_.at(c.owner).outgoing.contains(id));
    if (!c.is_connected) ++pending;
    for (const Branch& b : c.branches) {
      if (b.state == BranchState::kLeft) continue;
      assert(links_.at(b.link).connections.contains(id));
      --open_connections;
    }
  }
  for (const auto& [id, c] : incoming_) {
    assert(programs_.at(c.owner).incoming.contains(id));
    assert(links_.at(c.link).connections.contains(id));
    assert(by_theirs_.at({c.link, c.theirs}) == id);
    if (c.state != IncomingState::kEstablished) {
      assert(pending_.contains({c.since + kOfferTimeLimit, id}));
      ++offers;
    }
    --open_connections;
  }
  assert(pending + offers == pending_.size());
  for (const auto& [id, p] : programs_) offers -= p.offers.size();
  assert(open_connections == 0 && offers == 0);
  assert(by_theirs_.size() == incoming_.size() && virtual_qpns_.held() == outgoing_.size());
#endif
}

}  // namespace cepheus::connections
