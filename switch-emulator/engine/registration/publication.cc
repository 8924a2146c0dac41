// PUBLISH: a member's regions, for multicast WRITEs (docs/protocol.md, "Multicast WRITE").
#include "switch-emulator/engine/registration/refusals.h"
#include "switch-emulator/engine/registration/registration.h"
#include "switch-emulator/engine/registration/registration_messages.h"

namespace cepheus::fabric {

// A host publishes its own memory, to its own switch.
void Registrar::on_publish(Call& call, const wire::UdpDatagram& datagram,
                           const wire::Publication& publication) {
  call.count(Counter::kMrpPublish);
  const wire::MrpHeader& h = publication.header;
  if (h.mcst_id != datagram.ip.destination) return call.count(Counter::kDropMalformed);
  const bool is_host = call.port(call.ingress()).kind == PortKind::kHost;
  if (!is_host || publication.member.host != datagram.ip.source) {
    return call.count(Counter::kDropMrpForged);
  }
  GroupEntry* entry = groups_.find(h.mcst_id);
  if (entry == nullptr) return call.count(Counter::kDropUnknownGroup);
  if (entry->leader.instance != h.instance) return call.count(Counter::kDropMrpForeign);
  Mft& mft = entry->table.mft;
  if (mft.epoch != h.epoch) return call.count(Counter::kDropMrpStale);
  const PathNo path = mft.find(call.ingress());
  if (path == kNoPath || mft.paths[path].qpn != publication.member.qpn) {
    return call.count(Counter::kDropNotMember);
  }
  switch (mft.behaviour->on_publication(path, publication)) {
    case Behaviour::Published::kNotServed:
      return refuse_regions(call, mft, entry->leader, mft.paths[path]);
    case Behaviour::Published::kTooOld:
      return call.count(Counter::kDropMrpStale);
    case Behaviour::Published::kYes:
      return confirm_publication(call, datagram, publication);
  }
}

}  // namespace cepheus::fabric
