// receive() takes a descriptor, checks it, and takes the first reference to its slot. A bad one is
// counted and skipped, kBadDescriptorsAtOnce of them in one call. deliver() needs a ring entry
// within the sender's share, and a slot within this port's share; otherwise the frame is dropped
// and counted.
//
// flush() publishes and rings at most once. close() drops all references of the ring and rings the
// client, which finds its socket closed. Nothing is allocated per frame.
#include "switch-emulator/ports/switch_port.h"

#include <sys/eventfd.h>

#include <cassert>
#include <utility>

#include "wire/byte_order.h"

namespace cepheus::fabric {
namespace {

using wire::Frame;
using wire::kNoBuffer;

// Invalid descriptors, before other ports have their turn.
constexpr std::uint32_t kBadDescriptorsAtOnce = 64;
constexpr std::size_t kPrefetch = 2;  // descriptors ahead: one is copied while the next two travel

bool is_roce(const Frame& frame) {
  const std::uint8_t* p = frame.bytes.data();
  return frame.header_len >= wire::kExtensionOffset &&
         wire::load_be16(p + 12) == wire::Ethernet::kIpv4 &&
         p[wire::kIpOffset + 9] == wire::Ipv4Header::kUdp &&
         wire::load_be16(p + wire::kUdpOffset + 2) == wire::kRoceUdpPort;
}

}  // namespace

SwitchPort::SwitchPort(PayloadPools& pools, std::uint32_t area, FlushList& flush_list)
    : AccessPort(flush_list), pools_(pools), area_(area), share_(pools) {}

SwitchPort::~SwitchPort() { close(); }

wire::Result<GrantedFds> SwitchPort::open(const PeerCredentials& client) {
  assert(!open_);
  const std::uint32_t slots = pools_.geometry().slots_per_area;
  auto file = create_shared_memory("cepheus-port", PortSegment::size_for(slots));
  if (!file) return tl::unexpected(file.error());
  auto segment = PortSegment::map(file->get(), slots);
  if (!segment) return tl::unexpected(segment.error());
  auto bell = Bell::create();
  if (!bell) return tl::unexpected(bell.error());
  UniqueFd doorbell(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!doorbell.is_open()) {
    return wire::call_failed("can't make a doorbell");
  }
  const auto pool = pools_.pool_for(client.uid);
  if (!pool) return tl::unexpected(pool.error());

  pool_ = *pool;
  client_ = client;
  segment_file_ = std::move(*file);
  segment_ = std::move(*segment);
  doorbell_ = std::move(doorbell);
  bell_ = std::move(*bell);
  tx_ = RingConsumer<Descriptor>(segment_.tx());
  rx_ = RingProducer<Descriptor>(segment_.rx());
  returns_ = RingProducer<std::uint32_t>(segment_.returns());
  reclaimed_ = 0;
  rx_entries_.resize(kFrameRing);
  ring_shares_ = {};
  open_ = true;
  ++attachment_;
  pools_.set_owner(pool_, area_, this);
  flush();
  return GrantedFds{segment_file_.get(), pools_.fd(pool_), doorbell_.get(), bell_.client_end()};
}

void SwitchPort::forget_granted() {
  segment_file_.reset();
  bell_.forget_client_end();
}

void SwitchPort::close() {
  if (!open_) return;
  pools_.set_owner(pool_, area_, nullptr);
  for (; reclaimed_ != rx_.produced(); ++reclaimed_) {
    const wire::BufferRef ref = rx_entries_[reclaimed_ % kFrameRing].ref;
    if (ref == kNoBuffer) continue;
    share_.remove(ref);
    pools_.drop(ref);
  }
  open_ = false;
  bell_.ring();
  tx_ = {};  // they point into the segment
  rx_ = {};
  returns_ = {};
  reclaimed_ = 0;
  segment_ = PortSegment();
  segment_file_.reset();
  doorbell_.reset();
  bell_ = Bell();
  client_ = {};
  pools_.leave(pool_);
}

bool SwitchPort::check(const Descriptor& descriptor, Frame& frame) {
  if (!read_descriptor(descriptor, frame)) return false;
  if (is_roce(frame) != (frame.icrc_state != wire::Icrc::kNone)) return false;
  return descriptor.payload == Descriptor::kInline ||
         pools_.accept(pool_, area_, descriptor.payload, frame);
}

bool SwitchPort::receive(Frame& frame) {
  if (!open_) return false;
  for (std::uint32_t n = 0; n < kBadDescriptorsAtOnce && tx_.available() > 0; ++n) {
    tx_.prefetch(kPrefetch);
    mark_for_flush();
    Descriptor descriptor;
    tx_.take(descriptor);
    if (check(descriptor, frame)) return true;
    refuse(PortCounter::kDropBadDescriptor);
  }
  return false;
}

void SwitchPort::reclaim() {
  if (reclaimed_ == rx_.produced()) return;
  for (const std::uint32_t consumed = rx_.consumed(); reclaimed_ != consumed; ++reclaimed_) {
    const auto [ref, sender] = rx_entries_[reclaimed_ % kFrameRing];
    ring_shares_[sender].remove();
    if (ref == kNoBuffer) continue;
    share_.remove(ref);
    pools_.drop(ref);
  }
}

// A client that waits for more has to read the present frames before more can come.
void SwitchPort::wake_for_space() {
  has_batch_ = true;
  mark_for_flush();
}

// Whether this port may hold another reference to the slot.
bool SwitchPort::admit(wire::BufferRef ref) {
  if (share_.try_add(ref)) return true;
  reclaim();  // perhaps the client has read meanwhile
  return share_.try_add(ref);
}

bool SwitchPort::has_space(RingShares::Class sender) {
  return unread() < kFrameRing && ring_shares_[sender].has_space(kFrameRing - unread());
}

bool SwitchPort::deliver(const Frame& frame, SenderNo from, wire::Instant) {
  if (!open_) {
    counters_.add(PortCounter::kDropNoClient);
    return false;
  }
  const RingShares::Class sender = RingShares::of(from);
  if (!has_space(sender)) reclaim();
  auto why = PortCounter::kDropEgressFull;
  if (has_space(sender) && put(frame, sender, why)) return true;
  counters_.add(why);
  wake_for_space();
  return false;
}

bool SwitchPort::try_deliver(const Frame& frame, SenderNo sender) {
  if (unread() == kFrameRing) reclaim();
  auto why = PortCounter::kDropEgressFull;
  if (unread() < kFrameRing && put(frame, RingShares::of(sender), why)) return true;
  wake_for_space();
  return false;
}

// Puts the frame on the ring, which has a free entry. A bool and not an optional: that goes through
// memory, and reading it back waits until all stores to the ring before it are done, 12 % of a
// switch's time for copies.
bool SwitchPort::put(const Frame& frame, RingShares::Class sender, PortCounter& why) {
  if (frame.external == nullptr || frame.payload_len == 0) {
    write_entry(frame, Descriptor::kInline, kNoBuffer, sender);
    return true;
  }
  if (frame.ref == kNoBuffer || PayloadPools::pool_of(frame.ref) != pool_) {
    return put_copy(frame, sender, why);
  }
  if (!admit(frame.ref)) {
    why = PortCounter::kDropEgressFull;
    return false;
  }
  pools_.hold(frame.ref);
  write_entry(frame, pools_.offset_of(frame), frame.ref, sender);
  return true;
}

// The same with a copy of the payload, in the client's own pool.
bool SwitchPort::put_copy(Frame frame, RingShares::Class sender, PortCounter& why) {
  if (!pools_.copy_in(pool_, frame)) {
    why = PortCounter::kDropNoSlot;
    return false;
  }
  if (!admit(frame.ref)) {
    pools_.drop(frame.ref);
    why = PortCounter::kDropEgressFull;
    return false;
  }
  counters_.add(PortCounter::kCopiedPayloads);
  write_entry(frame, pools_.offset_of(frame), frame.ref, sender);
  return true;
}

// `ref`: the reference that the entry holds from now on.
void SwitchPort::write_entry(const Frame& frame, std::uint64_t payload, wire::BufferRef ref,
                             RingShares::Class sender) {
  rx_entries_[rx_.produced() % kFrameRing] = {ref, sender};
  write_descriptor(frame, payload, rx_.next());
  ring_shares_[sender].add();
  rx_.advance();
  has_batch_ = has_batch_ || !is_bulk_data(frame) || unread() >= kWindow;
  mark_for_flush();
}

// A hostile client may have "returned" slots it never had: the ring has space for every slot once.
void SwitchPort::take_back(std::uint32_t slot) {
  if (returns_.free_entries() == 0) return;
  returns_.next() = slot;
  returns_.advance();
  mark_for_flush();
}

void SwitchPort::flush() {
  unmark();
  if (!open_) return;
  std::uint32_t reasons = 0;
  if (rx_.has_unpublished()) {
    rx_.publish();
    reasons |= kWakeOnFrames;
  }
  if (std::exchange(has_batch_, false)) reasons |= kWakeOnBatch;
  if (tx_.has_unreleased()) {
    tx_.release();
    reasons |= kWakeOnSpace;
  }
  if (returns_.has_unpublished()) {
    returns_.publish();
    reasons |= kWakeOnSpace;
  }
  if (reasons == 0 || !segment_.client_sleeps().take(reasons)) return;
  counters_.add(PortCounter::kDoorbells);
  bell_.ring();
}

bool SwitchPort::arm() {
  if (!open_) return true;
  segment_.switch_sleeps().send_request(kWakeOnFrames);
  if (tx_.available() == 0 && !tx_.is_corrupt()) return true;
  disarm();
  return false;
}

}  // namespace cepheus::fabric
