// Which congestion notifications (CNPs) reach a group's source. Fixed when a group is registered.
//
// A source slows down by every CNP: with CNPs of k congested paths it would get 1/(k+1) of a link
// where a unicast beside it gets k/(k+1). A policy passes the CNPs of one path, the most congested.
// Over several switches each passes one path's, so that the next switch counts a subtree by its
// worst member.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "switch-emulator/engine/group/path.h"

namespace cepheus::fabric {

class CnpSelector {
 public:
  virtual ~CnpSelector() = default;
  // As in the topology file, with its window if it has one.
  virtual std::string to_text() const = 0;
  // A CNP about the current turn has arrived by `path`. Returns whether to pass it to the source,
  // which is at path `source`, another one; kNoPath: at none of these paths.
  virtual bool passes(Instant now, PathNo path, PathNo source) = 0;
  // The path with CNPs that pass, unless it is the source's; kNoPath: none is chosen, or all pass.
  virtual PathNo chosen() const { return kNoPath; }
  // A path has been added, as the last one; or has left, and the last one has its number.
  virtual void on_path_added() = 0;
  virtual void on_path_removed(PathNo gone, PathNo last) = 0;
  // Of its own fields and of all paths, in a hardware table.
  virtual std::size_t table_bytes() const = 0;
  virtual std::size_t bytes() const = 0;  // in memory here
};

// "all": passes every CNP (MC-RDMA IV-D).
class AllCnps final : public CnpSelector {
 public:
  std::string to_text() const override { return "all"; }
  bool passes(Instant, PathNo, PathNo) override { return true; }
  void on_path_added() override {}
  void on_path_removed(PathNo, PathNo) override {}
  std::size_t table_bytes() const override { return 0; }
  std::size_t bytes() const override { return sizeof(*this); }
};

// CNPs by path, and the path with CNPs that pass. Both outlast a turn: a queue at a receiver is as
// long for the next source, and most turns are too short for a choice of their own. While the
// source is at the chosen path, the path with most CNPs of the others stands in for it.
class CountedCnps : public CnpSelector {
 public:
  PathNo chosen() const final { return chosen_; }
  void on_path_added() override { counts_.push_back(0); }
  void on_path_removed(PathNo gone, PathNo last) override;
  std::size_t table_bytes() const override;

 protected:
  void count(PathNo path) {
    if (counts_[path] < kMost) ++counts_[path];
  }
  // Preconditions: a path is chosen; the CNP has been counted.
  bool is_passing(PathNo path, PathNo source) const;
  std::size_t allocated_bytes() const { return counts_.capacity() * sizeof(counts_[0]); }
  static constexpr std::uint16_t kMost = 0xFFFF;
  std::vector<std::uint16_t> counts_;
  PathNo chosen_ = kNoPath;
};

// "worst-path" (paper III-D "congestion control", which leaves window and ageing open): passes the
// CNPs of the path with most in the last window. A window lasts `least`, and on until a path has
// had kEnough: with fewer, chance would choose. A choice is dropped after a silence: twice the
// longest gap of its path in the last window, but at most half of that window.
class WorstPathCnps final : public CountedCnps {
 public:
  explicit WorstPathCnps(Duration least) : least_(least) {}
  std::string to_text() const override;
  bool passes(Instant now, PathNo path, PathNo source) override;
  std::size_t bytes() const override { return sizeof(*this) + allocated_bytes(); }
  std::size_t table_bytes() const override;
  static constexpr std::uint16_t kEnough = 16;
  // Longest silence before the choice is dropped.
  static constexpr Duration kLongest = std::chrono::seconds(30);

 private:
  using Microseconds = std::chrono::duration<std::uint32_t, std::micro>;  // 71 minutes at most
  static Microseconds at_most(Duration time);
  void begin(Instant now, Duration silence, PathNo chosen);

  const Duration least_;
  Microseconds silence_{};  // silence after which the choice is dropped
  Microseconds gap_{};      // the longest between two CNPs that passed in this window
  Instant began_{};         // this window
  Instant passed_{};        // the last CNP that passed
};

// "tmcf": passes the CNPs of the path with most in the last `slot` with any (TMCF IV). Slots of
// different switches need not agree. An empty slot changes nothing: under mild congestion most
// slots are empty. A group without CNPs for kQuiet, or a slot if that is longer, was not congested
// at all: its old worst path does not predict the next queue.
class SlottedCnps final : public CountedCnps {
 public:
  explicit SlottedCnps(Duration slot) : slot_(slot) {}
  std::string to_text() const override;
  bool passes(Instant now, PathNo path, PathNo source) override;
  std::size_t bytes() const override { return sizeof(*this) + allocated_bytes(); }
  // A congested sender gets about ten CNPs in this time at usual rates.
  static constexpr Duration kQuiet = std::chrono::milliseconds(10);

 private:
  void choose();

  const Duration slot_;
  Instant last_{};  // the last CNP of any path
};

// `window`: the shortest window, or the slot; above 0.
std::unique_ptr<CnpSelector> make_cnp_selector(net::CnpPolicy policy, Duration window);

}  // namespace cepheus::fabric
