// The connections of one host between a sending program and receiving ones, without I/O (MC-RDMA
// III-A, IV-A).
//
// A connection has one sender and up to 16 receivers. Either all are connected or none:
//
//   sender's broker    OFFER -->  each receiver's    --> its program
//                      <-- ACCEPT | REFUSE           <--
//   all accepted:      ESTABLISHED -->               CONNECTED to the sender
//   any other outcome: CANCEL to all with an OFFER   FAILED to the sender
//   later              LEFT (a receiver went), CLOSED (the sender did)
//
// Each side receives each message once. The driver owns sockets, authentication and keep-alive. It
// reports programs and links. Our programs' offers use links that this daemon dialled, the other
// daemon's offers the links that it accepted. Every table has a bound.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "controller/connections/engine/message.h"
#include "controller/virtual_qpns.h"
#include "wire/counter_table.h"

namespace cepheus::connections {

// Counters of refusals, by name (refusals.def).
enum class Refusal : std::size_t {
#define CEPHEUS_COUNTER(id, name, help) id,
#include "controller/connections/engine/refusals.def"
  kCount,
};

inline constexpr std::array<wire::CounterText, static_cast<std::size_t>(Refusal::kCount)>
    kRefusalTexts{{
#define CEPHEUS_COUNTER(id, name, help) {name, help},
#include "controller/connections/engine/refusals.def"
    }};

using Refusals = wire::CounterValues<Refusal>;

using ProgramId = std::uint32_t;
using LinkId = std::uint32_t;
using ConnectionId = std::uint64_t;

// Actions for the driver, in this order. The driver clears them.
struct Actions {
  struct Dial {
    LinkId link;
    wire::Ipv4 host;
  };
  struct ToPeer {
    LinkId link;
    Message message;
  };
  struct ToProgram {
    ProgramId program;
    Message message;
  };
  std::vector<Dial> dials;
  std::vector<ToPeer> to_peers;
  std::vector<ToProgram> to_programs;
  // Close the link after the queued messages. The broker has forgotten it.
  std::vector<LinkId> hang_ups;
  std::vector<ProgramId> drops;
  void clear() { *this = {}; }
};

class Broker {
 public:
  static constexpr std::size_t kMostServicesOfProgram = 16;
  static constexpr std::size_t kMostServices = 1024;
  static constexpr std::size_t kMostServicesOfUser = kMostServices / 2;
  static constexpr std::size_t kMostConnectionsOfProgram = 64;  // that it is the sender of
  static constexpr std::size_t kMostOffersOfProgram = 256;      // not yet established
  static constexpr std::size_t kMostOffersOfHost = kMostOffersOfProgram / 4;  // of them
  static constexpr std::size_t kMostIncoming = 4096;
  static constexpr std::size_t kMostIncomingOfHost = kMostIncoming / 4;
  static constexpr std::size_t kMostLinks = 512;  // each way
  // Accepted from one host. The first ones may be left from before its restart.
  static constexpr std::size_t kMostLinksOfHost = 4;
  static constexpr std::size_t kMostLinksOfProgram = kMostLinks / 4;  // dialled
  static constexpr std::size_t kMostLinksOfUser = kMostLinks / 2;     // dialled
  static constexpr wire::Duration kDefaultTimeLimit = std::chrono::seconds(5);
  static constexpr wire::Duration kMostTimeLimit = std::chrono::seconds(60);
  // The time for an offer's outcome: the sender's daemon has one after kMostTimeLimit.
  static constexpr wire::Duration kOfferTimeLimit = kMostTimeLimit + std::chrono::seconds(5);
  // The time for which a link without connections is kept.
  static constexpr wire::Duration kIdleLink = std::chrono::seconds(10);

  // `seed`: random, so that virtual QPNs differ from those before a restart.
  Broker(wire::Ipv4 host, std::uint32_t seed);

  void program_came(ProgramId program, std::uint32_t pid, std::uint32_t user);
  void program_left(wire::Instant now, ProgramId program, Actions& out);
  void on_request(wire::Instant now, ProgramId program, const Message& request, Actions& out);

  // A daemon that dialled us may speak. Nothing: there are too many.
  std::optional<LinkId> link_came(wire::Instant now, wire::Ipv4 host);
  // A link that we dialled is ready for messages.
  void link_is_up(wire::Instant now, LinkId link, Actions& out);
  // Ignored for links that the broker has forgotten. `why` is a sentence about the other daemon.
  void link_is_down(wire::Instant now, LinkId link, const std::string& why, Actions& out);
  void on_peer(wire::Instant now, LinkId link, const Message& message, Actions& out);

  void on_timer(wire::Instant now, Actions& out);
  wire::Instant deadline() const;

  Refusals& refusals() { return refusals_; }
  // Services, connections, peers, counters; at most 200 of each, and how many were left off.
  nlohmann::json status(wire::Instant now) const;
  // Asserts the invariants of the tables.
  void check_consistent() const;

 private:
  struct Program {
    std::uint32_t pid = 0, user = 0;
    std::set<std::string> services;
    std::set<ConnectionId> outgoing, incoming;
    std::multiset<wire::Ipv4> offers;  // the hosts of incoming that are not established
  };
  struct Link {
    wire::Ipv4 host;
    bool is_dialled = false, is_up = false;
    wire::Instant since;
    wire::Instant idle_until = wire::kNever;  // dialled ones that carry nothing
    std::set<ConnectionId> connections;       // ours: of outgoing_ if dialled, else of incoming_
    std::multiset<std::uint32_t> users;       // if dialled: of each connection's program
  };
  enum class BranchState { kDialling, kOffered, kAccepted, kLeft };
  struct Branch {
    LinkId link = 0;
    BranchState state = BranchState::kDialling;
    Member member;
  };
  struct Outgoing {
    ProgramId owner = 0;
    std::uint32_t request = 0;
    wire::Qpn virtual_qpn;
    std::string service;
    Data data;
    std::vector<Branch> branches;
    bool is_connected = false;
    wire::Instant since, give_up;
  };
  enum class IncomingState { kOffered, kAccepted, kEstablished };
  struct Incoming {
    ProgramId owner = 0;
    LinkId link = 0;
    wire::Ipv4 host;
    ConnectionId theirs = 0;  // its number at the sender's daemon
    std::string service;
    wire::Qpn virtual_qpn;
    IncomingState state = IncomingState::kOffered;
    wire::Instant since;
  };
  using OutgoingEntry = std::map<ConnectionId, Outgoing>::iterator;
  using IncomingEntry = std::map<ConnectionId, Incoming>::iterator;

  // The sender's side (broker_sender.cc).
  void connect(wire::Instant now, ProgramId program, const Message& request, Actions& out);
  LinkId link_to(wire::Instant now, wire::Ipv4 host, Actions& out);
  void offer(ConnectionId id, Outgoing& connection, Branch& branch, Actions& out);
  void on_answer(wire::Instant now, LinkId link, const Message& answer, Actions& out);
  void branch_ended(wire::Instant now, OutgoingEntry entry, Branch& branch, const std::string& why,
                    Actions& out);
  void fail(wire::Instant now, OutgoingEntry entry, wire::Ipv4 host, const std::string& why,
            Actions& out);
  // Sends CANCEL or CLOSED to each receiver with an OFFER, and forgets the connection.
  void end_outgoing(wire::Instant now, OutgoingEntry entry, const std::string& why, Actions& out);
  void leave_link(wire::Instant now, LinkId link, ConnectionId connection);

  // The receivers' side (broker_receiver.cc).
  void listen(ProgramId program, const std::string& service, Actions& out);
  void on_offer(wire::Instant now, LinkId link, const Message& offer, Actions& out);
  void on_news(LinkId link, const Message& news, Actions& out);
  void answer(ProgramId program, const Message& answer, Actions& out);
  // Tells the sender, REFUSE or LEFT, and forgets it.
  void end_incoming(IncomingEntry entry, const std::string& why, Actions& out);
  // Tells the program, CANCEL or CLOSED, and forgets it.
  void incoming_ended(IncomingEntry entry, const std::string& why, Actions& out);
  // Tells both of an offer that its sender's daemon forgot.
  void expire(IncomingEntry entry, Actions& out);
  void forget_incoming(IncomingEntry entry);
  // Ends its time as an open offer.
  void conclude(IncomingEntry entry);
  std::size_t incoming_of(wire::Ipv4 host) const;

  void close(wire::Instant now, ProgramId program, ConnectionId connection, Actions& out);
  void drop(wire::Instant now, ProgramId program, const std::string& why, Actions& out);
  void hang_up(wire::Instant now, LinkId link, Actions& out);
  // Links without connections, if their time ends by then.
  void hang_up_idle(wire::Instant until, Actions& out);

  wire::Ipv4 host_;
  mrp::VirtualQpns virtual_qpns_;
  Refusals refusals_;
  ConnectionId next_connection_ = 1;
  LinkId next_link_ = 1;
  std::map<ProgramId, Program> programs_;
  std::map<std::string, ProgramId> services_;
  std::map<LinkId, Link> links_;
  std::map<wire::Ipv4, LinkId> dialled_;
  std::map<ConnectionId, Outgoing> outgoing_;
  std::map<ConnectionId, Incoming> incoming_;
  std::map<std::pair<LinkId, ConnectionId>, ConnectionId>
      by_theirs_;  // incoming_, by the sender's number
  // Connections without an outcome, outgoing and incoming, by when to give up.
  std::set<std::pair<wire::Instant, ConnectionId>> pending_;
};

}  // namespace cepheus::connections
