// One rank of a job that calls broadcasts and reductions: its team, its groups, and its calls'
// algorithms.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collectives/algorithms.h"
#include "collectives/reduction.h"
#include "collectives/safeguard.h"

namespace cepheus::coll::fake {

// Small broadcasts are those of up to 256 bytes, in messages of 64. Units of large ones have up to
// 400 bytes, in pieces of 50; down a tree in segments of 100.
// Without a safeguard, and with all collectives.
void use_small_sizes();
// Reductions of more than 200 bytes of all ranks are long.
void use_long_reductions();
// With a safeguard. Its first comparison has a single sample, and half of all may be samples.
void use_safeguard();

// Packs nothing: the bytes lie as they are.
class Gaps final : public Packing {
 public:
  explicit Gaps(std::vector<std::byte>& bytes) : memory_(bytes) {}
  Code pack(std::size_t offset, void* to, std::size_t length) override;
  Code unpack(std::size_t offset, const void* from, std::size_t length) override;

 private:
  std::vector<std::byte>& memory_;
};

// The operation of reductions: neither commutative nor associative.
std::byte mix(std::byte left, std::byte right);
class Mixing final : public Operator {
 public:
  Code apply(const void* left, void* right, std::size_t elements) override;
};
// The library's operation on floats, in the place of that one if there is one.
using Library = std::optional<arithmetic::Combiner>;
// A rank's memory for a reduction in place, with its contribution, which depends on `seed` and rank...
std::vector<std::byte> memory_before(const ReductionShape& shape, int ranks, int rank,
                                     std::size_t seed, const Library& library = {});
// ... and with the right result. At another rank than a Reduce's root it stays as it was.
enum class Pairs : std::uint8_t { kByRank, kOthers };  // kOthers: of ReducingGroup
std::vector<std::byte> memory_after(const ReductionShape& shape, int ranks, int rank,
                                    std::size_t seed, const Library& library = {},
                                    Pairs pairs = Pairs::kByRank);

class Caller {
 public:
  // If several ranks share a host, the first one leads it.
  Caller(host::Communicator& comm, int ranks_per_host);

  // A broadcast of `memory`, which holds the data on the root. `has_gaps`: the data lies in no
  // contiguous memory.
  void begin(std::vector<std::byte>& memory, int root, bool blocking, bool has_gaps);
  // A reduction, in place: `memory` has the contribution, and gets the result where this rank has one.
  // Of an Allgather it is that of all ranks, with the contribution at this rank's place.
  // `data`: unless Code::kDone, the contribution can't be read.
  void begin(const ReductionShape& shape, std::vector<std::byte>& memory, bool blocking,
             Code data = Code::kDone, const Library& library = {});
  // Advances the call. Code::kPending: call again.
  Code progress();
  // Its memory is the program's again. `rc`: the outcome. Code::kNotServed: the saved function has
  // served it.
  void finish(Code rc);
  bool is_calling() const { return payload_ || reduction_; }
  // Valid once the algorithm is chosen.
  Route route() const { return algorithm_ != nullptr ? algorithm_->route() : Route::kSaved; }
  // Why this is the route. Empty until the algorithm is chosen.
  std::string reason() const { return algorithm_ != nullptr ? algorithm_->reason() : ""; }
  // It is right behind an agreement, once the algorithm is chosen.
  bool confirms() const { return algorithm_ != nullptr && confirms_; }
  // The ranks are to agree on the way before this call goes on.
  bool is_agreement_due() { return is_compared() && safeguard_.is_agreement_due(sizes()); }
  // It has ended in the error `rc`, because a rank has refused it, as this rank knows.
  bool is_refused(Code rc) const {
    return rc != Code::kDone && rc != Code::kNotServed && algorithm_ != nullptr &&
           algorithm_->is_refused();
  }
  // Its time is that of its route, as this rank knows.
  bool is_comparable() const { return algorithm_ != nullptr && algorithm_->is_comparable(); }
  // Comparisons that this rank has judged, and how often they have changed the way.
  std::size_t comparisons() const { return comparisons_; }
  std::size_t changes() const { return changes_; }

  void look_after();
  // No broadcast follows. True once no rank needs the groups any more and they are destroyed.
  bool close();
  const Team& team() const { return team_; }
  // The rank with the NIC of this rank's host.
  int leader() const { return leader_; }

 private:
  Code choose_algorithm();
  bool is_long_one() const { return reduction_ && is_long(*reduction_, team_.size()); }
  bool is_compared() { return !is_long_one() || algorithms_.may_compare(data_); }
  SizeClass sizes() const;

  Team team_;
  int leader_ = 0;
  Algorithms algorithms_;
  Safeguard safeguard_;
  std::size_t comparisons_ = 0, changes_ = 0;
  std::map<SizeClass, Way> ways_;   // as judged here
  Algorithm* algorithm_ = nullptr;  // of this call, once it is chosen
  int root_ = 0;
  bool blocking_ = false;
  bool confirms_ = false;
  std::optional<Gaps> gaps_;
  std::optional<Payload> payload_;
  std::optional<ReductionShape> reduction_;
  Mixing mixing_;
  ReductionData data_;
};

}  // namespace cepheus::coll::fake
