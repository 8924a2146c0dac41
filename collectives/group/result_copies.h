// Results that travel from their holder to a member that lacks them: some units of one call, in one
// message behind their name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collectives/group/kept_results.h"
#include "collectives/group/messages.h"

namespace cepheus::coll {

class ResultCopies {
 public:
  struct Name {
    std::uint64_t generation, first, end;  // units

    bool operator==(const Name&) const = default;
  };

  explicit ResultCopies(const Team& team) : team_(team) {}

  // Of a member that lacks `bytes` of results. Code::kPending: call again. Code::kDone: received() has
  // them until release().
  Code receive(const Name& due, std::size_t bytes, int from);
  std::span<const std::byte> received() const { return std::span(copy_).subspan(sizeof(Name)); }
  void release() { std::vector<std::byte>().swap(copy_); }

  // Of their holder: sends a copy of results that `kept` has.
  Code send(const Name& name, const KeptResults& kept, int to);
  // Once all sends are complete: their number.
  std::size_t take_sent();
  bool is_sending() const { return !sent_.empty(); }

  // A peer is gone, or the communicator.
  void forget();

 private:
  const Team& team_;
  std::vector<std::byte> copy_;
  std::vector<std::vector<std::byte>> sent_;
  Messages receives_, sends_;
  bool is_receiving_ = false;
};

}  // namespace cepheus::coll
