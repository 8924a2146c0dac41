// For tests: a client's end of a port without the checks of HostPort. It can write anything
// anywhere.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "switch-emulator/ports/handshake.h"
#include "switch-emulator/ports/port_segment.h"
#include "switch-emulator/ports/test_segment.h"
#include "wire/roce.h"

namespace cepheus::fabric {

class BareClient {
 public:
  BareClient(const GrantedFds& fds, const PoolGeometry& pool_geometry, std::uint32_t area)
      : geometry(pool_geometry),
        segment(*PortSegment::map(fds[kSegmentFd], geometry.slots_per_area)),
        pool(*Mapping::map(fds[kPoolFd], 0, geometry.pool_bytes(), Mapping::Access::kReadWrite)),
        own_area(area),
        tx(segment.tx()),
        rx(segment.rx()),
        returns(segment.returns()) {}

  std::uint64_t offset_of(std::uint32_t slot) const {
    return own_area * geometry.area_bytes() + std::uint64_t{slot} * geometry.slot_bytes;
  }
  Descriptor data_in(std::uint32_t slot, std::uint8_t fill) {
    Descriptor d = valid_headers(64);
    d.payload = offset_of(slot);
    std::memset(pool.data() + d.payload, fill, 64);
    return d;
  }
  static Descriptor valid_headers(std::uint16_t payload_bytes) {
    wire::RoceHeaders headers;
    wire::Frame frame{};
    headers.emit(frame, payload_bytes);
    frame.payload_len = payload_bytes;
    Descriptor d{};
    write_descriptor(frame, frame.payload_fits_inline(payload_bytes) ? Descriptor::kInline : 0, d);
    return d;
  }
  void put(const Descriptor& descriptor) {
    ASSERT_GT(tx.free_entries(), 0u);
    tx.next() = descriptor;
    tx.advance();
    tx.publish();
  }
  // The frame, with its payload in `slot` unless it is inline.
  void put(const wire::Frame& frame, std::uint32_t slot) {
    Descriptor d{};
    const bool is_inline = frame.external == nullptr;
    write_descriptor(frame, is_inline ? Descriptor::kInline : offset_of(slot), d);
    if (!is_inline) std::memcpy(pool.data() + d.payload, frame.external, frame.payload_len);
    put(d);
  }
  std::optional<std::uint32_t> take_slot() {
    if (returns.available() == 0) return std::nullopt;
    std::uint32_t slot = 0;
    returns.take(slot);
    returns.release();
    return slot;
  }
  std::optional<Descriptor> take() {
    if (rx.available() == 0) return std::nullopt;
    Descriptor got;
    rx.take(got);
    rx.release();
    EXPECT_TRUE(has_nothing_behind_its_lengths(got));
    return got;
  }

  PoolGeometry geometry;
  PortSegment segment;
  Mapping pool;
  std::uint32_t own_area;
  RingProducer<Descriptor> tx;
  RingConsumer<Descriptor> rx;
  RingConsumer<std::uint32_t> returns;
};

}  // namespace cepheus::fabric
