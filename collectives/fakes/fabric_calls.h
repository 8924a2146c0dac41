// The running fabric, as the fakes of libmcast's functions use it.
#pragma once

#include "collectives/fakes/allocations.h"
#include "collectives/fakes/fake_fabric.h"

namespace cepheus::coll::fake {

struct FabricCalls {
  static Fabric& fabric();
  static auto& groups() { return fabric().groups_; }
  static std::uint32_t next_number() { return ++fabric().numbers_; }
  static void note_end_of(const mcast_group& end) { fabric().note_end_of(end); }
  static std::uint64_t next_serial() { return ++fabric().serials_; }
  static bool knows(mcast_group_h group) { return fabric().knows(group); }
  static void note_misuse() { ++fabric().misuses_; }
  static void complete(mcast_op_t* op, mcast_status_t status, std::size_t length,
                       std::uint32_t imm) {
    const Counting counted(true);
    op->done(op, status, length, imm);
  }
};

}  // namespace cepheus::coll::fake
