// The sender's side of connections: offers, answers, and the one outcome. connect() checks hosts,
// the program's connections, the links of program, user and host, and takes a virtual QPN; only
// then it makes a connection. A receiver's branch is dialling, offered, accepted or left.
//
// Until all have accepted, the first refusal, loss or time-out fails the connection for all. Later
// a receiver that leaves is only reported.
#include <algorithm>
#include <set>

#include "controller/connections/engine/broker.h"

namespace cepheus::connections {
void Broker::connect(wire::Instant now, ProgramId program, const Message& request, Actions& out) {
  const auto refuse = [&](Refusal why, wire::Ipv4 host, const std::string& text) {
    refusals_.add(why);
    out.to_programs.push_back(
        {program,
         {.type = MessageType::kFailed, .host = host, .request = request.request, .text = text}});
  };
  Program& p = programs_.at(program);
  // Links that are kept for later connections make room.
  if (dialled_.size() + request.hosts.size() > kMostLinks) hang_up_idle(now + kIdleLink, out);
  if (request.hosts.empty()) {
    return refuse(Refusal::kBadHosts, {}, "a connection needs at least one receiver: name hosts");
  }
  std::set<wire::Ipv4> hosts;
  const auto is_of_user = [&](const auto& dialled) {
    return links_.at(dialled.second).users.contains(p.user);
  };
  auto links_of_user = static_cast<std::size_t>(std::ranges::count_if(dialled_, is_of_user));
  std::size_t new_links = 0;
  for (const wire::Ipv4 host : request.hosts) {
    if (host == host_ || host.is_unset()) {
      return refuse(Refusal::kBadHosts, host,
                    "a sender's receivers are on other hosts: leave its own out");
    }
    if (!hosts.insert(host).second) {
      return refuse(Refusal::kBadHosts, host, "it is named twice: name each receiver once");
    }
    const auto dialled = dialled_.find(host);
    if (dialled == dialled_.end()) ++new_links;
    if (dialled == dialled_.end() || !is_of_user(*dialled)) ++links_of_user;
  }
  if (p.outgoing.size() >= kMostConnectionsOfProgram) {
    return refuse(Refusal::kTooManyConnections, {},
                  "one program has at most " + std::to_string(kMostConnectionsOfProgram) +
                      " connections: close some");
  }
  for (const ConnectionId id : p.outgoing) {
    for (const Branch& b : outgoing_.at(id).branches) {
      if (b.state != BranchState::kLeft) hosts.insert(b.member.host);
    }
  }
  if (dialled_.size() + new_links > kMostLinks || links_of_user > kMostLinksOfUser ||
      hosts.size() > kMostLinksOfProgram) {
    return refuse(Refusal::kTooManyPeers, {},
                  "this program, its user or this host is connected with as many hosts as it may "
                  "be: close some connections, or try again later");
  }
  const auto qpn = virtual_qpns_.take(now);
  if (!qpn) {
    return refuse(Refusal::kNoVirtualQpn, {},
                  "all virtual queue pair numbers of this host are held: try again in 10 s");
  }
  const ConnectionId id = next_connection_++;
  Outgoing& c = outgoing_[id];
  c.owner = program;
  c.request = request.request;
  c.virtual_qpn = *qpn;
  c.service = request.service;
  c.data = request.data;
  c.since = now;
  const wire::Duration requested = std::chrono::milliseconds(request.time_ms);
  c.give_up =
      now + (request.time_ms == 0 ? kDefaultTimeLimit : std::min(requested, kMostTimeLimit));
  pending_.insert({c.give_up, id});
  p.outgoing.insert(id);
  out.to_programs.push_back({program,
                             {.type = MessageType::kConnecting,
                              .connection = id,
                              .request = c.request,
                              .virtual_qpn = c.virtual_qpn}});
  c.branches.resize(request.hosts.size());
  for (std::size_t i = 0; i < request.hosts.size(); ++i) {
    Branch& branch = c.branches[i];
    branch.member.host = request.hosts[i];
    branch.link = link_to(now, request.hosts[i], out);
    Link& link = links_.at(branch.link);
    link.connections.insert(id);
    link.users.insert(p.user);
    link.idle_until = wire::kNever;
    if (link.is_up) offer(id, c, branch, out);
  }
}

LinkId Broker::link_to(wire::Instant now, wire::Ipv4 host, Actions& out) {
  const auto [entry, is_new] = dialled_.insert({host, next_link_});
  if (!is_new) return entry->second;
  Link& link = links_[next_link_];
  link.host = host;
  link.is_dialled = true;
  link.since = now;
  out.dials.push_back({next_link_, host});
  return next_link_++;
}

void Broker::link_is_up(wire::Instant now, LinkId id, Actions& out) {
  const auto entry = links_.find(id);
  if (entry == links_.end() || entry->second.is_up) return;
  entry->second.is_up = true;
  entry->second.since = now;
  for (const ConnectionId connection : entry->second.connections) {
    Outgoing& c = outgoing_.at(connection);
    for (Branch& branch : c.branches) {
      if (branch.link == id) offer(connection, c, branch, out);
    }
  }
}

void Broker::offer(ConnectionId id, Outgoing& c, Branch& branch, Actions& out) {
  branch.state = BranchState::kOffered;
  out.to_peers.push_back({branch.link,
                          {.type = MessageType::kOffer,
                           .host = host_,
                           .connection = id,
                           .virtual_qpn = c.virtual_qpn,
                           .service = c.service,
                           .data = c.data}});
}

void Broker::on_answer(wire::Instant now, LinkId link, const Message& answer, Actions& out) {
  const auto entry = outgoing_.find(answer.connection);
  if (entry == outgoing_.end()) return refusals_.add(Refusal::kLate);  // it crossed our CANCEL
  Outgoing& c = entry->second;
  const auto branch =
      std::ranges::find_if(c.branches, [&](const Branch& b) { return b.link == link; });
  if (branch == c.branches.end() || branch->state == BranchState::kLeft) {
    return refusals_.add(Refusal::kLate);
  }
  if (answer.type != MessageType::kAccept) {
    if (answer.type == MessageType::kRefuse) refusals_.add(Refusal::kRefusedByProgram);
    return branch_ended(now, entry, *branch, answer.text, out);
  }
  if (branch->state != BranchState::kOffered) return refusals_.add(Refusal::kLate);
  branch->state = BranchState::kAccepted;
  branch->member.name = answer.name;
  branch->member.data = answer.data;
  const auto has_accepted = [](const Branch& b) { return b.state == BranchState::kAccepted; };
  if (!std::ranges::all_of(c.branches, has_accepted)) return;
  c.is_connected = true;
  pending_.erase({c.give_up, entry->first});
  c.data = {};
  Message connected = about(MessageType::kConnected, entry->first);
  connected.request = c.request;
  connected.virtual_qpn = c.virtual_qpn;
  for (Branch& b : c.branches) {
    out.to_peers.push_back({b.link, about(MessageType::kEstablished, entry->first)});
    connected.members.push_back(b.member);
    b.member.data = {};
  }
  out.to_programs.push_back({c.owner, std::move(connected)});
}

void Broker::branch_ended(wire::Instant now, OutgoingEntry entry, Branch& branch,
                          const std::string& why, Actions& out) {
  leave_link(now, branch.link, entry->first);
  branch.state = BranchState::kLeft;
  if (!entry->second.is_connected) return fail(now, entry, branch.member.host, why, out);
  Message left = about(MessageType::kLeft, entry->first, why);
  left.host = branch.member.host;
  out.to_programs.push_back({entry->second.owner, std::move(left)});
}

void Broker::fail(wire::Instant now, OutgoingEntry entry, wire::Ipv4 host, const std::string& why,
                  Actions& out) {
  Message failed = about(MessageType::kFailed, entry->first, why);
  failed.request = entry->second.request;
  failed.host = host;
  out.to_programs.push_back({entry->second.owner, std::move(failed)});
  end_outgoing(now, entry, host.is_unset() ? why : "receiver " + host.to_string() + ": " + why,
               out);
}

void Broker::end_outgoing(wire::Instant now, OutgoingEntry entry, const std::string& why,
                          Actions& out) {
  const ConnectionId id = entry->first;
  const Outgoing& c = entry->second;
  const MessageType type = c.is_connected ? MessageType::kClosed : MessageType::kCancel;
  for (const Branch& b : c.branches) {
    if (b.state == BranchState::kLeft) continue;
    if (b.state != BranchState::kDialling) out.to_peers.push_back({b.link, about(type, id, why)});
    leave_link(now, b.link, id);
  }
  if (!c.is_connected) pending_.erase({c.give_up, id});
  virtual_qpns_.give_back(c.virtual_qpn, now);
  programs_.at(c.owner).outgoing.erase(id);
  outgoing_.erase(entry);
}

void Broker::leave_link(wire::Instant now, LinkId id, ConnectionId connection) {
  const auto entry = links_.find(id);
  if (entry == links_.end()) return;  // the lost link
  Link& link = entry->second;
  link.connections.erase(connection);
  link.users.erase(link.users.find(programs_.at(outgoing_.at(connection).owner).user));
  if (link.connections.empty()) link.idle_until = now + kIdleLink;
}

}  // namespace cepheus::connections
