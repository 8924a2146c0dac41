// What a group's source is asked for when a receiver says NAK. Fixed when a group is registered.
#pragma once

#include "switch-emulator/engine/nak_filter.h"
#include "switch-emulator/engine/switch.h"

namespace cepheus::fabric {

class NakPolicy {
 public:
  virtual ~NakPolicy() = default;
  virtual const char* name() const = 0;  // as in the topology file
  // What the source is to hear of `nak`, when all have what lies up to `min`. NakFilter says when.
  virtual Nak for_source(const Nak& nak, Psn min) const = 0;
  // A rule is off, and it is to hear that past all order.
  virtual bool is_at_once(const Nak& nak, const Rules& rules) const = 0;
};

// "hold": as it is, once all have what it acknowledges (paper III-D).
class HoldNaks final : public NakPolicy {
 public:
  const char* name() const override { return "hold"; }
  Nak for_source(const Nak& nak, Psn) const override { return nak; }
  bool is_at_once(const Nak& nak, const Rules& rules) const override {
    return nak.rnr ? !rules.rnr_ordering : !rules.nak_ordering;
  }
};

// "rewrite": at once, for the first packet that anybody lacks (MC-RDMA IV-C).
class RewriteNaks final : public NakPolicy {
 public:
  const char* name() const override { return "rewrite"; }
  Nak for_source(const Nak& nak, Psn min) const override { return {min + 1, nak.rnr, nak.timer}; }
  bool is_at_once(const Nak&, const Rules&) const override { return false; }
};

}  // namespace cepheus::fabric
