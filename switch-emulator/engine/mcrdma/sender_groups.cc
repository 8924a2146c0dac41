#include "switch-emulator/engine/mcrdma/sender_groups.h"

#include "switch-emulator/engine/group/bridging.h"
#include "switch-emulator/engine/mcrdma/made_feedback.h"
#include "wire/byte_order.h"
#include "wire/ecn.h"
#include "wire/icrc.h"

namespace cepheus::fabric {

using wire::Opcode;
using wire::RoceHeaders;

namespace {

// Distinguishes a sender group's packet from others, before its other headers are parsed.
struct Glance {
  Opcode opcode;
  Qpn qpn;
};
std::optional<Glance> glance(const Frame& frame) {
  const auto bytes = frame.header();
  if (bytes.size() < wire::kExtensionOffset || frame.icrc_state == wire::Icrc::kNone) {
    return std::nullopt;
  }
  const std::uint8_t* bth = bytes.data() + wire::kBthOffset;
  return Glance{static_cast<Opcode>(bth[0]), Qpn(wire::load_be24(bth + 5))};
}

// All its headers, if it is whole; otherwise counts the drop.
std::optional<RoceHeaders> read(Call& call, const Frame& frame, const wire::UdpHeaders& outer) {
  auto headers = RoceHeaders::parse(frame, outer);
  if (!headers) {
    call.count(Counter::kDropMalformed);
  } else if (call.config.check_icrc && !wire::check_icrc(frame)) {
    call.count(Counter::kDropCorrupt);
    headers.reset();
  }
  return headers;
}

// An acknowledgement echoes the mark of a packet. The sender gets a CNP for it if the policy
// allows, even if the acknowledgement is absorbed.
void take_echo(Call& call, const SenderGroup& group, Ipv4 from) {
  AckMerge& merge = *group.merge;
  if (merge.take_cnp(call.now, from) != AckMerge::Taken::kPassed) {
    return call.count(Counter::kEchoFiltered);
  }
  notify(call, group);
}

// A byte of the BTH that the ICRC does not cover.
void clear_becn(Frame& frame) { frame.bytes[wire::kBthOffset + 4] &= 0xBF; }

}  // namespace

bool SenderGroups::on_packet(Call& call, const Frame& frame, const wire::UdpHeaders& headers) {
  // If sender groups are off, these are ordinary QPNs.
  if (call.config.sender_groups == net::SenderGroups::kOff) return false;
  const auto packet = glance(frame);
  if (!packet || !wire::is_sender_group(packet->qpn)) return false;
  const bool is_feedback =
      packet->opcode == Opcode::kRcAcknowledge || packet->opcode == Opcode::kCnp;
  SenderGroup* const group =
      is_feedback ? table_.find_merge({headers.ip.destination, packet->qpn})
                  : table_.find({headers.ip.source, packet->qpn}, headers.ip.destination);
  if (group == nullptr || (!is_feedback && group->rule.empty() && !group->merge)) {
    return drop_unrewritten(call, headers.ip.destination);
  }
  const auto all = read(call, frame, headers);
  if (!all) return true;
  if (!is_feedback) return on_data(call, *group, frame, *all);
  take_feedback(call, *group, frame, *all);
  return true;
}

bool SenderGroups::on_datagram(Call& call, const Frame& frame, const wire::UdpHeaders& headers) {
  const bool is_taken = installer_.on_datagram(call, frame, headers);
  if (const SenderGroup* group = installer_.take_merged()) note_deadline(*group);
  return is_taken;
}

// At the last switch before a host, drops packets for a virtual queue pair, which no host has.
// False: the packet goes on to another switch.
bool SenderGroups::drop_unrewritten(Call& call, Ipv4 destination) const {
  const auto out = routes_.next_hop(destination, 0, call.ingress());
  const bool is_last = out && call.port(*out).kind == net::PortKind::kHost;
  if (!is_last || !call.rules().sender_rewritten) return false;
  call.count(Counter::kDropUnrewritten);
  return true;
}

// Senders with overdue feedback get requests.
void SenderGroups::on_timer(Call& call) {
  installer_.on_timer(call);
  if (call.now < overdue_at_) return;
  overdue_at_ = wire::kNever;
  table_.for_each([&](SenderGroup& group) {
    if (!group.merge) return;
    if (group.merge->deadline() <= call.now) {
      send_answer(call, group, group.merge->request_again(call.now));
      call.count(Counter::kSenderRequestedAgain);
    }
    note_deadline(group);
  });
}

void SenderGroups::note_deadline(const SenderGroup& group) {
  overdue_at_ = std::min(overdue_at_, group.merge->deadline());
}

// False: it has met no rule, and goes on unchanged.
bool SenderGroups::on_data(Call& call, SenderGroup& group, const Frame& frame,
                           const RoceHeaders& headers) {
  group.last_seen = call.now;
  group.tos = wire::without_ecn(headers.ip.tos);
  if (group.merge && call.ingress() != group.merge->port()) {
    call.count(Counter::kDropNotMember);
    return true;
  }
  const wire::OpcodeInfo& info = wire::opcode_info(headers.bth.opcode);
  if (!info.multicastable() || info.ieth) {
    call.count(Counter::kDropNotMulticastable);
    if (group.merge && info.request()) {
      refuse(call, group, headers, {}, wire::NakCode::kInvalidRequest);
    }
    return true;
  }
  ++group.data_packets;
  if (group.merge) {
    group.merge->on_data(call.now, headers.bth.psn, headers.bth.ack_request);
    note_deadline(group);
  }
  if (group.rule.empty()) return false;
  replicate(call, group, frame, headers);
  return true;
}

void SenderGroups::replicate(Call& call, SenderGroup& group, const Frame& frame,
                             const RoceHeaders& headers) {
  call.count(Counter::kSenderDataTaken);
  // A WRITE without data touches no memory, so its region is not checked (IBTA 9.7.4.1.5).
  const bool is_addressed =
      wire::opcode_info(headers.bth.opcode).reth && headers.reth.dma_length > 0;
  for (const Replica& replica : group.rule) {
    Rewrite r{headers.ip.source, replica.destination, 1, headers.bth.destination_qp,
              headers.bth.psn};
    wire::Reth reth;
    if (replica.qpn.value() != 0) r.qpn = replica.qpn;
    if (is_addressed && replica.qpn.value() != 0) {
      reth = headers.reth;
      const wire::MrpRegion* region = group.find_region(replica.receiver, reth.rkey);
      const bool fits = region != nullptr && reth.virtual_address <= region->length &&
                        reth.dma_length <= region->length - reth.virtual_address;
      if (region == nullptr || (!fits && call.rules().write_bounds)) {
        call.lose(Counter::kDataCopies, Counter::kDropSenderWriteRefused);
        refuse(call, group, headers, replica.destination, wire::NakCode::kRemoteAccess);
        continue;
      }
      reth.virtual_address += region->virtual_address;
      reth.rkey = region->rkey;
      r.reth = &reth;
    }
    wire::Ipv4Header ip = headers.ip;
    ip.destination = replica.destination;
    const auto out =
        routes_.next_hop(ip.destination, flow_hash(call.config.mac, frame, ip), call.ingress());
    if (!out) {
      call.lose(Counter::kDataCopies, Counter::kDropCopyNoRoute);
      continue;
    }
    if (ip.ttl <= 1) {
      call.lose(Counter::kDataCopies, Counter::kDropCopyTtl);
      continue;
    }
    Frame* const copy = call.emit(Counter::kDataCopies, *out, frame);
    if (copy == nullptr) {
      call.take_too_long();
      answers_.report_too_long(call, group, replica.receiver);
      continue;
    }
    rewrite(call, *out, *copy, frame, r);
    ++group.copies;
  }
}

void SenderGroups::take_feedback(Call& call, SenderGroup& group, const Frame& frame,
                                 const RoceHeaders& headers) {
  AckMerge& merge = *group.merge;
  const Ipv4 from = headers.ip.source;
  const bool is_cnp = headers.bth.opcode == Opcode::kCnp;
  AckMerge::Answer answer{headers.bth.psn, headers.aeth};
  const AckMerge::Taken taken =
      is_cnp ? merge.take_cnp(call.now, from)
             : merge.take(call.now, from, headers.bth.psn, headers.aeth, answer);
  note_deadline(group);
  if (taken == AckMerge::Taken::kStranger) return call.count(Counter::kDropNotMember);
  if (taken == AckMerge::Taken::kMalformed) return call.count(Counter::kDropMalformed);
  if (!is_cnp && headers.bth.becn) take_echo(call, group, from);
  if (taken == AckMerge::Taken::kUnsent) return call.count(Counter::kDropFeedbackUnsent);
  if (taken == AckMerge::Taken::kWithheld) return call.count(Counter::kSenderFeedbackWithheld);
  if (taken == AckMerge::Taken::kAbsorbed) {
    return call.count(is_cnp ? Counter::kCnpFiltered : Counter::kSenderFeedbackAbsorbed);
  }
  const Counter kind = is_cnp ? Counter::kCnpToSource : Counter::kSenderFeedbackPassed;
  Frame* const copy = call.emit(kind, merge.port(), frame);
  if (copy == nullptr) return;
  if (!is_cnp) clear_becn(*copy);
  rewrite(call, merge.port(), *copy, frame,
          {merge.alias(), group.installed.sender(), 1, group.installed.sender_qpn, answer.psn,
           nullptr, is_cnp ? nullptr : &answer.aeth});
}

// The sender's switch knows the acknowledgements of all. Other switches answer in the name of the
// receiver in question, and the merge never counts an error as an acknowledgement.
void SenderGroups::refuse(Call& call, SenderGroup& group, const RoceHeaders& headers,
                          Ipv4 on_behalf_of, wire::NakCode code) {
  if (group.merge) {
    if (const auto answer = group.merge->refuse(code)) send_answer(call, group, *answer);
    return;
  }
  const auto out = routes_.next_hop(group.installed.sender(), 0, PortId());
  if (!out) return;
  send_to_merge(call, group, on_behalf_of, *out, {headers.bth.psn, wire::Aeth::nak(code)});
}

}  // namespace cepheus::fabric
