// The receivers' side of connections: services, offers and established connections. An offer goes
// to the program that listens for its service; it waits for the answer, and then for the sender's
// outcome. Messages that cross each other are counted and ignored.
//
// Refused, each with a counter: an unknown service, one that another program has, and more
// services, offers or connections than their bounds allow. A repeated number or a foreign host
// address hangs up the link.
#include "controller/connections/engine/broker.h"

namespace cepheus::connections {
void Broker::listen(ProgramId program, const std::string& service, Actions& out) {
  Program& p = programs_.at(program);
  Message answer{.type = MessageType::kNotListening, .service = service};
  std::size_t of_user = 0;
  for (const auto& [id, other] : programs_) {
    if (other.user == p.user) of_user += other.services.size();
  }
  const auto taken = services_.find(service);
  if (taken != services_.end() && taken->second != program) {
    refusals_.add(Refusal::kServiceTaken);
    answer.text = "process " + std::to_string(programs_.at(taken->second).pid) +
                  " of this host listens for it: end that, or choose another name";
  } else if (taken == services_.end() && p.services.size() >= kMostServicesOfProgram) {
    refusals_.add(Refusal::kTooManyServices);
    answer.text = "one program listens for at most " + std::to_string(kMostServicesOfProgram) +
                  " services: distinguish yours by the sender's data";
  } else if (taken == services_.end() &&
             (services_.size() >= kMostServices || of_user >= kMostServicesOfUser)) {
    refusals_.add(Refusal::kTooManyServices);
    answer.text = "this host or this user has as many services as may be: end programs that listen";
  } else {
    answer.type = MessageType::kListening;
    services_[service] = program;
    p.services.insert(service);
  }
  out.to_programs.push_back({program, std::move(answer)});
}

void Broker::on_offer(wire::Instant now, LinkId id, const Message& offer, Actions& out) {
  Link& link = links_.at(id);
  if (by_theirs_.contains({id, offer.connection}) || offer.host != link.host) {
    return hang_up(now, id, out);
  }
  const auto refuse = [&](Refusal why, const std::string& text) {
    refusals_.add(why);
    out.to_peers.push_back({id, about(MessageType::kRefuse, offer.connection, text)});
  };
  const auto service = services_.find(offer.service);
  if (service == services_.end()) {
    return refuse(Refusal::kNoService,
                  "no program listens there for service '" + offer.service + "': start it first");
  }
  Program& p = programs_.at(service->second);
  if (p.offers.size() >= kMostOffersOfProgram || p.offers.count(link.host) >= kMostOffersOfHost ||
      incoming_.size() >= kMostIncoming || incoming_of(link.host) >= kMostIncomingOfHost) {
    return refuse(Refusal::kTooManyOffers,
                  "it has as many connections, in all or of this sender's host, as it may have: "
                  "try again later");
  }
  const ConnectionId ours = next_connection_++;
  incoming_[ours] = {.owner = service->second,
                     .link = id,
                     .host = link.host,
                     .theirs = offer.connection,
                     .service = offer.service,
                     .virtual_qpn = offer.virtual_qpn,
                     .since = now};
  by_theirs_[{id, offer.connection}] = ours;
  link.connections.insert(ours);
  p.incoming.insert(ours);
  p.offers.insert(link.host);
  pending_.insert({now + kOfferTimeLimit, ours});
  Message notice = offer;
  notice.connection = ours;
  out.to_programs.push_back({service->second, std::move(notice)});
}

void Broker::on_news(LinkId link, const Message& news, Actions& out) {
  const auto known = by_theirs_.find({link, news.connection});
  if (known == by_theirs_.end()) return refusals_.add(Refusal::kLate);  // it crossed our LEFT
  const auto entry = incoming_.find(known->second);
  if (news.type != MessageType::kEstablished) return incoming_ended(entry, news.text, out);
  Incoming& c = entry->second;
  if (c.state != IncomingState::kAccepted) return refusals_.add(Refusal::kLate);
  conclude(entry);
  c.state = IncomingState::kEstablished;
  out.to_programs.push_back({c.owner, about(MessageType::kEstablished, entry->first)});
}

void Broker::answer(ProgramId program, const Message& answer, Actions& out) {
  const auto entry = incoming_.find(answer.connection);
  if (entry == incoming_.end() || entry->second.owner != program ||
      entry->second.state != IncomingState::kOffered) {
    return refusals_.add(Refusal::kLate);  // it was cancelled meanwhile
  }
  Incoming& c = entry->second;
  if (answer.type == MessageType::kRefuse) return end_incoming(entry, answer.text, out);
  c.state = IncomingState::kAccepted;
  Message accept = answer;
  accept.connection = c.theirs;
  out.to_peers.push_back({c.link, std::move(accept)});
}

void Broker::end_incoming(IncomingEntry entry, const std::string& why, Actions& out) {
  const Incoming& c = entry->second;
  const bool was_offered = c.state == IncomingState::kOffered;
  Message message = about(was_offered ? MessageType::kRefuse : MessageType::kLeft, c.theirs, why);
  message.host = was_offered ? wire::Ipv4{} : host_;
  out.to_peers.push_back({c.link, std::move(message)});
  forget_incoming(entry);
}

void Broker::incoming_ended(IncomingEntry entry, const std::string& why, Actions& out) {
  const bool stood = entry->second.state == IncomingState::kEstablished;
  out.to_programs.push_back(
      {entry->second.owner,
       about(stood ? MessageType::kClosed : MessageType::kCancel, entry->first, why)});
  forget_incoming(entry);
}

void Broker::expire(IncomingEntry entry, Actions& out) {
  const std::string why = "the sender's cepheus-cmd reported no outcome in time";
  out.to_programs.push_back({entry->second.owner, about(MessageType::kCancel, entry->first, why)});
  end_incoming(entry, why, out);
}

void Broker::conclude(IncomingEntry entry) {
  auto& offers = programs_.at(entry->second.owner).offers;
  offers.erase(offers.find(entry->second.host));
  pending_.erase({entry->second.since + kOfferTimeLimit, entry->first});
}

std::size_t Broker::incoming_of(wire::Ipv4 host) const {
  std::size_t count = 0;
  for (const auto& [id, link] : links_) {
    if (!link.is_dialled && link.host == host) count += link.connections.size();
  }
  return count;
}

void Broker::forget_incoming(IncomingEntry entry) {
  const Incoming& c = entry->second;
  Program& p = programs_.at(c.owner);
  if (c.state != IncomingState::kEstablished) conclude(entry);
  p.incoming.erase(entry->first);
  by_theirs_.erase({c.link, c.theirs});
  if (const auto link = links_.find(c.link); link != links_.end()) {
    link->second.connections.erase(entry->first);
  }
  incoming_.erase(entry);
}

}  // namespace cepheus::connections
