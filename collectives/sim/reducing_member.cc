// A member's look at the world: messages first, then its end of the group, then what the agreement
// makes of both. act() carries out each output before the next event.
//
// Results arrive in a ring of slots, which also keeps the last window for members that lack some. A sum
// in place writes each result into the program's memory once it is complete. If results come as whole
// operations, and for all other calls, that memory is written when a call ends.
#include "collectives/sim/reducing_member.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "collectives/core/rules.h"

namespace cepheus::coll::sim {

namespace {

using Path = RootlessAgreement::Path;
using Stage = RootlessAgreement::Stage;

constexpr int kControlTag = -1, kUnitTag = -2;

// Pairwise by rank, in rounds. Without the rule a call that the host computes is reduced from left
// to right.
Bytes reduce_blocks(std::vector<Bytes> blocks, bool pairwise) {
  const auto add = [](Bytes& left, const Bytes& right) {
    for (std::size_t i = 0; i < left.size(); ++i) left[i] = reduce(left[i], right[i]);
  };
  if (!pairwise) {
    for (std::size_t i = 1; i < blocks.size(); ++i) add(blocks[0], blocks[i]);
    return blocks[0];
  }
  for (std::size_t step = 1; step < blocks.size(); step *= 2)
    for (std::size_t i = 0; i + step < blocks.size(); i += 2 * step)
      add(blocks[i], blocks[i + step]);
  return blocks[0];
}

bool is_of_failover(const RootlessMessage& message) {
  return message.kind != RootlessMessage::Kind::kWaiting &&
         message.kind != RootlessMessage::Kind::kHas;
}

std::uint32_t kept_results(const RootlessPlan& plan) {
  const bool keeps_more = plan.has_whole_results && rules.operations_are_kept;
  return plan.window + (keeps_more ? RootlessPlan::kMostUnits - 1 : 0);
}

}  // namespace

ReducingMember::ReducingMember(int rank, RootlessWorld& world)
    : rank_(rank),
      world_(world),
      agreement_(rank, world.plan.ranks, kept_results(world.plan)),
      results_(kept_results(world.plan), Bytes(world.plan.unit_bytes)),
      lengths_(kept_results(world.plan)),
      unit_(world.plan.unit_bytes) {
  agreement_.set_retry_after(rank == 0 ? world.plan.retry_after : world.plan.retry_after + 1);
}

ReducingMember::~ReducingMember() {
  for (host::Request* const each : {control_, copy_})
    if (each != nullptr) {
      host::cancel(*each);
      host::free(each);
    }
  for (const Sent& each : sent_) host::free(each.request);
}

// --- The program.

std::pair<std::size_t, std::size_t> ReducingMember::part(const Call& call, std::size_t unit) const {
  const std::size_t at = std::min(unit * world_.plan.unit_bytes, call.contribution.size());
  return {at, std::min(world_.plan.unit_bytes, call.contribution.size() - at)};
}

void ReducingMember::begin(std::size_t index) {
  const Collective& next = world_.plan.program[index];
  Call call{};
  call.index = index;
  call.number = agreement_.start();
  call.memory.resize(next.bytes);
  for (std::size_t i = 0; i < next.bytes; ++i) call.memory[i] = input_byte(index, rank_, i);
  if (next.kind == Collective::Kind::kSum) {
    call.contribution = call.memory;
  } else {
    call.contribution.resize(next.bytes * static_cast<std::size_t>(world_.plan.ranks));
    std::ranges::copy(call.memory,
                      call.contribution.begin() + static_cast<std::ptrdiff_t>(next.bytes) * rank_);
  }
  call.gathered.resize(call.contribution.size());
  call.units = std::max<std::size_t>(
      1, (call.contribution.size() + world_.plan.unit_bytes - 1) / world_.plan.unit_bytes);
  calls_.push_back(std::move(call));
}

void ReducingMember::note_broadcast() {
  if (rules.counted_apart) return;
  (void)agreement_.start();
  if (agreement_.stage() == Stage::kWhole) agreement_.take_result(true, out_);
}

void ReducingMember::note_failed_broadcasts() {
  if (!rules.counted_apart) agreement_.fail(Cause::kWork, "the broadcasts' group failed", out_);
}

void ReducingMember::lose(int rank) {
  agreement_.lose(rank, out_);
  act();
}

void ReducingMember::progress(RootlessAgreement::Time now, bool looks_at_nic,
                              std::vector<Ended>& ended) {
  take_sent();
  act();
  receive_messages();
  if (looks_at_nic) look_at_group();
  copy_lacking();
  advance(ended);
  contribute();
  agreement_.watch(now, out_);
  act();
}

// --- I/O for the agreement.

void ReducingMember::act() {
  const RootlessOutput out = std::exchange(out_, {});
  for (const auto& each : out.sends) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(&each.message);
    failover_messages_ += is_of_failover(each.message) ? 1 : 0;
    world_.trace("rank ", rank_, " sends ", name(each.message.kind), " to ", each.to, ", units ",
                 each.message.units, ", complete ", each.message.complete, ", calls ",
                 each.message.calls, ": ", each.message.reason);
    Sent& sent = sent_.emplace_back(Bytes(bytes, bytes + sizeof each.message), false, nullptr);
    (void)host::send(world_.mpi.communicator(rank_), sent.data.data(), sent.data.size(), each.to,
                     kControlTag, sent.request);
  }
  for (const auto& each : out.serves) {
    world_.trace("rank ", rank_, " serves ", each.first, " to ", each.end, " to ", each.to);
    for (std::uint64_t unit = each.first; unit < each.end; ++unit)
      send_unit(each.to, unit, unit + 1 == each.end);
  }
  if (out.stops) world_.trace("rank ", rank_, " stops");
  if (out.stops) group().stop(rank_);
  if (out.releases) {
    keeps_results_ = false;
    for (Bytes& each : results_) std::ranges::fill(each, std::byte{0xDD});
  }
}

// From the kept result itself.
void ReducingMember::send_unit(int to, std::uint64_t unit, bool is_last) {
  Sent& sent = sent_.emplace_back(Bytes(), is_last, nullptr);
  (void)host::send(world_.mpi.communicator(rank_), results_[slot(unit)].data(),
                   lengths_[slot(unit)], to, kUnitTag, sent.request);
}

void ReducingMember::take_sent() {
  sent_.remove_if([&](const Sent& each) {
    if (!host::is_complete(*each.request)) return false;
    host::free(each.request);
    if (each.ends_serve) agreement_.served(out_);
    return true;
  });
}

void ReducingMember::receive_messages() {
  for (;;) {
    if (control_ == nullptr)
      (void)host::receive(world_.mpi.communicator(rank_), &incoming_, sizeof incoming_,
                          host::kAnyRank, kControlTag, control_);
    if (!host::is_complete(*control_)) return;
    const int from = host::received(*control_).from;
    host::free(std::exchange(control_, nullptr));
    failover_messages_ -= is_of_failover(incoming_) ? 1 : 0;
    agreement_.receive(from, incoming_, out_);
    act();
  }
}

void ReducingMember::look_at_group() {
  const Stage stage = agreement_.stage();
  if (stage != Stage::kWhole && stage != Stage::kStopping) return;
  while (const auto bytes = group().take_completion(rank_)) {
    take(results_[slot(completed_)].data(), *bytes);
    if (world_.pick(4) == 0) break;  // the next one comes behind this look
  }
  if (group().shows_failure(rank_)) agreement_.fail(Cause::kWork, "a NIC gave up", out_);
  act();
  if (agreement_.stage() == Stage::kStopping && group().is_drained(rank_)) agreement_.drained(out_);
  act();
}

// From the holder, one after the other.
void ReducingMember::copy_lacking() {
  while (agreement_.stage() == Stage::kCopying) {
    forget_part();
    if (copy_ == nullptr)
      (void)host::receive(world_.mpi.communicator(rank_), unit_.data(), unit_.size(),
                          agreement_.holder(), kUnitTag, copy_);
    if (!host::is_complete(*copy_)) return;
    const host::Received received = host::received(*copy_);
    host::free(std::exchange(copy_, nullptr));
    if (received.error != Code::kDone) {
      agreement_.lose(agreement_.holder(), out_);
    } else {
      ++copied_;
      take(unit_.data(), received.bytes);
    }
    act();
    if (received.error != Code::kDone) return;
  }
}

// --- Units.

void ReducingMember::contribute() {
  for (Call& call : calls_) {
    if (agreement_.path(call.number) != Path::kNetwork) continue;
    for (; call.contributed < call.units; ++call.contributed) {
      if (contributed_ >= completed_ + world_.plan.window) return;
      const auto [at, length] = part(call, call.contributed);
      const auto* const data = call.contribution.data() + at;
      const bool adds = what(call).kind == Collective::Kind::kSum;
      const bool is_direct = !rules.input_is_kept && adds && what(call).is_in_place;
      group().contribute(rank_,
                         {{data, data + length},
                          is_direct ? call.memory.data() + at : results_[slot(contributed_)].data(),
                          adds});
      agreement_.contribute(++contributed_);
    }
  }
}

// Copying begins. If results come as whole operations, the agreement has not counted those of the
// incomplete operation. The holder sends them again, so this member forgets them.
void ReducingMember::forget_part() {
  if (is_copying_) return;
  is_copying_ = true;
  completed_ = agreement_.units();
  const auto call =
      std::ranges::find_if(calls_, [](const Call& each) { return each.arrived < each.units; });
  if (call != calls_.end() && world_.plan.has_whole_results) call->arrived = 0;
}

// The result of the next unit.
void ReducingMember::take(const std::byte* data, std::size_t bytes) {
  const auto call =
      std::ranges::find_if(calls_, [](const Call& each) { return each.arrived < each.units; });
  if (call == calls_.end()) return;
  const std::uint64_t unit = completed_++;
  const auto [at, length] = part(*call, call->arrived);
  const bool is_direct = !rules.input_is_kept && what(*call).is_in_place &&
                         what(*call).kind == Collective::Kind::kSum && data != unit_.data();
  if (is_direct) data = call->memory.data() + at;
  std::memmove(results_[slot(unit)].data(), data, bytes);
  lengths_[slot(unit)] = bytes;
  std::copy_n(data, std::min(bytes, length),
              call->gathered.begin() + static_cast<std::ptrdiff_t>(at));
  const bool is_written = what(*call).is_in_place && !world_.plan.has_whole_results &&
                          what(*call).kind == Collective::Kind::kSum;
  if (is_written)
    std::copy_n(data, std::min(bytes, length),
                call->memory.begin() + static_cast<std::ptrdiff_t>(at));
  if (call->arrived++ == 0) call->first = unit;
  const bool is_last = call->arrived == call->units;
  if (!world_.plan.has_whole_results) return agreement_.take_result(is_last, out_);
  agreement_.see_result();
  for (std::size_t i = 1; is_last && i <= call->units; ++i)
    agreement_.take_result(i == call->units, out_);
}

// --- Calls.

void ReducingMember::advance(std::vector<Ended>& ended) {
  while (!calls_.empty()) {
    Call& call = calls_.front();
    switch (agreement_.path(call.number)) {
      case Path::kDone:
        end_by_group(call, ended);
        break;
      case Path::kSaved:
        if (!std::exchange(call.is_in_host, true))
          world_.host.enter(call.number, rank_, call.memory);
        if (world_.host.outcome(call.number) != nullptr)
          end_by_host(call, ended);
        else if (world_.is_death_reported)
          ended.push_back({call.index, How::kError, {}});
        else
          return;
        break;
      case Path::kSetUp:
        if (set_up(call.number)) continue;
        if (!world_.is_death_reported) return;
        lose(*world_.dead);
        continue;
      case Path::kError:
        ended.push_back({call.index, How::kError, {}});
        break;
      case Path::kNetwork:
      case Path::kWait:
        return;
    }
    calls_.pop_front();
  }
}

// True once its outcome is known here.
bool ReducingMember::set_up(std::uint64_t call) {
  SetUp& all = world_.set_ups[call];
  all.here.insert(rank_);
  if (!all.informed.contains(rank_)) return false;
  if (!all.outcome->is_ready) {
    agreement_.refuse(all.outcome->retry_at);
    return true;
  }
  contributed_ = completed_ = 0;
  is_copying_ = false;
  keeps_results_ = true;
  for (Call& each : calls_) each.contributed = each.arrived = 0;
  agreement_.renew(call, out_);
  act();
  return true;
}

Bytes ReducingMember::result(const Call& call, const std::vector<Bytes>& blocks,
                             bool by_host) const {
  const Collective& now = what(call);
  Bytes out;
  switch (now.kind) {
    case Collective::Kind::kReduce:
      if (now.root != rank_) return out;
      [[fallthrough]];
    case Collective::Kind::kAllreduce:
      return reduce_blocks(blocks, rules.same_order || !by_host);
    case Collective::Kind::kAllgather:
      for (const Bytes& each : blocks) out.insert(out.end(), each.begin(), each.end());
      return out;
    case Collective::Kind::kSum:
      out.resize(now.bytes);
      for (const Bytes& each : blocks)
        for (std::size_t i = 0; i < out.size(); ++i)
          out[i] = static_cast<std::byte>(std::to_integer<unsigned>(out[i]) +
                                          std::to_integer<unsigned>(each[i]));
      return out;
    case Collective::Kind::kBarrier:
    case Collective::Kind::kBroadcast:
      break;
  }
  return out;
}

// Of a sum: one, which is the sum.
std::vector<Bytes> ReducingMember::blocks_of(const Call& call, const Bytes& gathered) const {
  std::vector<Bytes> blocks;
  const std::size_t bytes = what(call).bytes;
  const bool is_sum = what(call).kind == Collective::Kind::kSum;
  for (std::size_t at = 0; bytes > 0 && at + bytes <= gathered.size(); at += bytes) {
    const auto first = gathered.begin() + static_cast<std::ptrdiff_t>(at);
    blocks.emplace_back(first, first + static_cast<std::ptrdiff_t>(bytes));
  }
  if (blocks.empty()) blocks.resize(is_sum ? 1 : static_cast<std::size_t>(world_.plan.ranks));
  return blocks;
}

void ReducingMember::end_by_group(Call& call, std::vector<Ended>& ended) {
  const std::vector<Bytes> blocks = blocks_of(call, call.gathered);
  Bytes output = result(call, blocks, false);
  if (!rules.gathers_are_kept && keeps_results_) {
    for (std::uint64_t unit = std::max(call.first, agreement_.first_kept());
         unit < call.first + call.units; ++unit)
      std::copy_n(output.begin(), std::min(output.size(), lengths_[slot(unit)]),
                  results_[slot(unit)].begin());
  }
  ended.push_back({call.index, How::kGroup, std::move(output)});
}

// The first units are the group's. Some ranks have no input of them any more.
void ReducingMember::end_by_host(const Call& call, std::vector<Ended>& ended) {
  std::vector<Bytes> inputs;
  for (const auto& [rank, input] : *world_.host.outcome(call.number)) inputs.push_back(input);
  Bytes gathered;
  if (what(call).kind == Collective::Kind::kSum) {
    gathered = result(call, inputs, true);
  } else {
    for (const Bytes& each : inputs) gathered.insert(gathered.end(), each.begin(), each.end());
  }
  const std::size_t by_group = agreement_.first_unit(call.number) * world_.plan.unit_bytes;
  std::copy_n(call.gathered.begin(), std::min(by_group, gathered.size()), gathered.begin());
  ended.push_back({call.index, How::kHost, result(call, blocks_of(call, gathered), true)});
}

}  // namespace cepheus::coll::sim
