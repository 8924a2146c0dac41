#include "switch-emulator/engine/registration/admission.h"

#include "switch-emulator/engine/call.h"

namespace cepheus::fabric {

using wire::MrpReject;

namespace {

GroupKind kind_of(const MrpRequest& request) {
  const wire::MrpMessage& message = request.message;
  return {(message.header.flags & wire::MrpHeader::kLossEnds) != 0, message.reduction};
}

bool is_well_formed(const MrpRequest& request) {
  const wire::MrpHeader& h = request.message.header;
  return request.message.member_count > 0 && h.seq < h.total;
}

}  // namespace

// Older than the present epoch, or a repeat of a finished step: changes nothing and gets no answer.
bool Admission::is_stale(const MrpRequest& request) const {
  if (const Tombstone* stone = groups_.find_tombstone(request.id())) {
    return stone->leader == request.leader() && !wire::newer_epoch(request.epoch(), stone->epoch);
  }
  const GroupEntry* entry = groups_.find(request.id());
  if (entry == nullptr || entry->leader != request.leader()) return false;
  if (!entry->is_active && entry->table.mft.epoch == request.epoch()) {
    return entry->table.roster.step() != wire::MrpType::kRegister;
  }
  return !wire::newer_epoch(request.epoch(), entry->table.mft.epoch);
}

bool Admission::is_within_rate(const Call& call, const MrpRequest& request) {
  return is_under_way(request) || rate_.admit(call.ingress(), call.now);
}

// Further parts of a list, and repeats, are not new requests.
bool Admission::is_under_way(const MrpRequest& request) const {
  const GroupEntry* entry = groups_.find(request.id());
  return entry != nullptr && entry->leader == request.leader() && !entry->is_active &&
         entry->table.mft.epoch == request.epoch();
}

// Reasons that need no look at the members. A newer epoch replaces its leader's table, also a
// running one: the leader does not need it any more, and this switch missed its UNREGISTER.
Refusal Admission::refuse(Call& call, const MrpRequest& request) {
  if (!is_well_formed(request)) return {MrpReject::kMalformed, {}};
  if (groups_.find_tombstone(request.id()) != nullptr) return {MrpReject::kIdInUse, {}};
  GroupEntry* entry = groups_.find(request.id());
  if (entry != nullptr && entry->leader != request.leader()) return {MrpReject::kIdInUse, {}};
  if (entry != nullptr) {
    if (entry->table.mft.epoch == request.epoch()) {
      // Parts of one list are of one group.
      if (entry->table.kind != kind_of(request)) return {MrpReject::kMalformed, {}};
      // REGISTER from two sides at once: two switches disagree on the routes, and the paths would
      // be no tree.
      return leads_to(entry->table.mft, call.ingress()) ? Refusal{}
                                                        : Refusal{MrpReject::kNoRoute, {}};
    }
    ageing_.replace(call, request.id());
  }
  if (groups_.size() >= call.config.max_groups) return {MrpReject::kTableFull, {}};
  if (groups_.led_by(request.leader().host) >= call.config.max_groups_per_host) {
    call.count(Counter::kRefusedQuota);
    return {MrpReject::kQuota, {}};
  }
  return {};
}

tl::expected<GroupEntry*, MrpReject> Admission::open(Call& call, const MrpRequest& request) {
  const wire::MrpMessage& message = request.message;
  const auto added =
      groups_.add(request.id(), request.leader(), request.epoch(), routes_.class_count(),
                  {message.header.flags, message.reduction}, call.now);
  if (!added) return added;
  GroupEntry& entry = **added;
  entry.table.kind = kind_of(request);
  Mft& mft = entry.table.mft;
  const PortConfig& port = call.port(call.ingress());
  mft.leader = groups_.add_path(entry.table, call.ingress(), port.kind == PortKind::kHost);
  return &entry;
}

}  // namespace cepheus::fabric
