// Which congestion notifications (CNPs) a group's source hears. Fixed when a group is registered.
//
// A source slows down by every CNP: told of k congested paths it would take 1/(k+1) of a link where
// a unicast beside it takes k/(k+1). A policy passes those of one path, the most congested. Over
// several switches each passes one path's, so that the next one counts a subtree by its worst
// member.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "switch-emulator/engine/path.h"

namespace cepheus::fabric {

class CnpSelector {
 public:
  virtual ~CnpSelector() = default;
  virtual std::string to_text() const = 0;  // as in the topology file, and its window if it has one
  // A CNP about the current turn came by `path`, not its source's. Is the source to hear it?
  virtual bool passes(Instant now, PathNo path) = 0;
  // The path whose CNPs pass; kNoPath: none is chosen, or those of all pass.
  virtual PathNo chosen() const { return kNoPath; }
  // Another turn: what is known is about the last one.
  virtual void on_turn(std::size_t paths) = 0;
  // A path has come, as the last one; or left, and the last one got its number.
  virtual void on_path_added() = 0;
  virtual void on_path_removed(PathNo gone, PathNo last) = 0;
  virtual std::size_t table_bytes() const = 0;  // of its own fields and of all paths
  virtual std::size_t bytes() const = 0;        // that it takes here
};

// "all": every one (MC-RDMA IV-D).
class AllCnps final : public CnpSelector {
 public:
  std::string to_text() const override { return "all"; }
  bool passes(Instant, PathNo) override { return true; }
  void on_turn(std::size_t) override {}
  void on_path_added() override {}
  void on_path_removed(PathNo, PathNo) override {}
  std::size_t table_bytes() const override { return 0; }
  std::size_t bytes() const override { return sizeof(*this); }
};

// CNPs by path, and the path whose CNPs pass.
class CountedCnps : public CnpSelector {
 public:
  PathNo chosen() const final { return chosen_; }
  void on_turn(std::size_t paths) override;
  void on_path_added() override { counts_.push_back(0); }
  void on_path_removed(PathNo gone, PathNo last) override;
  std::size_t table_bytes() const override;

 protected:
  void count(PathNo path) {
    if (counts_[path] < kMost) ++counts_[path];
  }
  std::size_t room_bytes() const { return counts_.capacity() * sizeof(counts_[0]); }
  static constexpr std::uint16_t kMost = 0xFFFF;
  std::vector<std::uint16_t> counts_;
  PathNo chosen_ = kNoPath;
};

// "worst-path" (paper III-D "congestion control", whose text leaves window and ageing open): those
// of the path that had most in the last window. A window lasts `least`, and on until some path has
// had kEnough in it: of fewer, chance chooses. A choice is forgotten after a silence: twice the
// longest gap that its path had in the last window, and half of that window at most.
class WorstPathCnps final : public CountedCnps {
 public:
  explicit WorstPathCnps(Duration least) : least_(least) {}
  std::string to_text() const override;
  bool passes(Instant now, PathNo path) override;
  std::size_t bytes() const override { return sizeof(*this) + room_bytes(); }
  std::size_t table_bytes() const override;
  static constexpr std::uint16_t kEnough = 16;
  static constexpr Duration kLongest = std::chrono::seconds(30);  // silence that is waited for

 private:
  using Microseconds = std::chrono::duration<std::uint32_t, std::micro>;  // 71 minutes at most
  static Microseconds at_most(Duration time);
  void begin(Instant now, Duration silence, PathNo chosen);

  const Duration least_;
  Microseconds silence_{};  // after so long the choice is forgotten
  Microseconds gap_{};      // the longest between two CNPs that passed in this window
  Instant began_{};         // this window
  Instant passed_{};        // the last CNP that passed
};

// "tmcf": those of the path that had most in the last `slot` in which any came (TMCF IV). Slots of
// different switches need not agree. An empty slot changes nothing: where congestion is mild, most
// are empty. But a group that has heard of none for kQuiet, or a slot if that is longer, was not
// congested at all: which path was worst before says nothing of the next queue that grows.
class SlottedCnps final : public CountedCnps {
 public:
  explicit SlottedCnps(Duration slot) : slot_(slot) {}
  std::string to_text() const override;
  bool passes(Instant now, PathNo path) override;
  std::size_t bytes() const override { return sizeof(*this) + room_bytes(); }
  // A congested sender is told some ten times in it at usual rates.
  static constexpr Duration kQuiet = std::chrono::milliseconds(10);

 private:
  void choose();

  const Duration slot_;
  Instant last_{};  // when any path had one
};

// `window`: the least one, or the slot; above 0.
std::unique_ptr<CnpSelector> make_cnp_selector(net::CnpPolicy policy, Duration window);

}  // namespace cepheus::fabric
