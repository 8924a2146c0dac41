// First, all replicas must be named and in sync. Then digests of chunks are compared, and those of
// blocks in chunks that differ. Last, differing blocks are compared again. A block differs if
// kLooksAlike comparisons in a row show the same contents, kBetweenLooks apart. One that changes
// each time is busy.
//
// The exit status is 0 for equal, 1 for differing or behind, 2 for unknown. Nothing is written to a
// replica. A request covers at most kAtOnce bytes.
#include <algorithm>
#include <iostream>
#include <map>
#include <thread>
#include <tuple>

#include "replica/tools/commands.h"
#include "replica/tools/observer.h"
#include "wire/printable.h"

namespace cepheus::replica {
namespace {

enum CheckExit { kAlike = 0, kDiffers = 1, kUnknown = 2 };

constexpr std::uint64_t kAtOnce = 16 << 20;  // limit of digests in one answer
// A write reaches all replicas within microseconds, or within a second if one of them dies. So a
// longer difference, without a change, is an error.
constexpr auto kBetweenLooks = std::chrono::milliseconds(500);
constexpr unsigned kLooksAlike = 4;
constexpr unsigned kMostLooks = 20;

using AllDigests = std::vector<Digest>;  // of the same bytes, by replica

class Check {
 public:
  Check(std::vector<Observer> replicas, const Geometry& geometry)
      : replicas_(std::move(replicas)), geometry_(geometry) {}

  wire::Result<void> run() {
    if (auto done = find(0, geometry_.size, geometry_.chunk,
                         kAtOnce / geometry_.chunk * geometry_.chunk, chunks_);
        !done)
      return done;
    for (const auto& [offset, unused] : chunks_) {
      const std::uint64_t length =
          std::min<std::uint64_t>(geometry_.chunk, geometry_.size - offset);
      if (auto done = find(offset, length, geometry_.block, length, blocks_); !done) return done;
    }
    return look_again();
  }

  int report() const {
    for (const std::uint64_t offset : differing_) {
      std::cout << "block " << offset / geometry_.block << " differs:";
      const AllDigests& found = blocks_.at(offset);
      for (std::size_t i = 0; i < found.size(); ++i) {
        std::cout << " " << replicas_[i].address() << (i + 1 < found.size() ? "," : "");
        std::size_t same = 0;
        while (found[same] != found[i]) ++same;
        if (same < i) std::cout << " (as " << replicas_[same].address() << ")";
      }
      std::cout << "\n";
    }
    if (!differing_.empty()) {
      std::cout << differing_.size() << " of " << geometry_.size / geometry_.block
                << " blocks differ\n";
      return kDiffers;
    }
    if (!busy_.empty()) {
      std::cout << busy_.size() << " blocks changed during the whole check: run it again\n";
      return kUnknown;
    }
    std::cout << "equal: " << geometry_.size << " bytes on " << replicas_.size() << " replicas\n";
    return kAlike;
  }

 private:
  // Units that differ, with each replica's digest.
  wire::Result<void> find(std::uint64_t begin, std::uint64_t length, std::uint32_t unit,
                          std::uint64_t step, std::map<std::uint64_t, AllDigests>& out) {
    for (std::uint64_t at = begin; at < begin + length; at += step) {
      std::vector<std::vector<Digest>> all;
      for (Observer& replica : replicas_) {
        auto digests = replica.digests({at, std::min(step, begin + length - at), unit});
        if (!digests) return tl::unexpected(digests.error());
        all.push_back(std::move(*digests));
      }
      for (std::size_t i = 0; i < all.front().size(); ++i) {
        AllDigests found;
        for (const auto& each : all) found.push_back(each[i]);
        if (!is_alike(found)) out[at + i * unit] = std::move(found);
      }
    }
    return {};
  }

  static bool is_alike(const AllDigests& found) {
    return std::ranges::all_of(found, [&](const Digest& d) { return d == found.front(); });
  }

  // A block counts as different if all replicas held the same as before in several comparisons.
  wire::Result<void> look_again() {
    std::map<std::uint64_t, unsigned> unchanged;
    for (const auto& [offset, unused] : blocks_) unchanged[offset] = 1;
    for (unsigned look = 0; look < kMostLooks && !unchanged.empty(); ++look) {
      std::this_thread::sleep_for(kBetweenLooks);
      for (auto at = unchanged.begin(); at != unchanged.end();) {
        std::map<std::uint64_t, AllDigests> now;
        auto done = find(at->first, geometry_.block, geometry_.block, geometry_.block, now);
        if (!done) return done;
        if (now.empty()) {
          at = unchanged.erase(at);
          continue;
        }
        AllDigests& before = blocks_[at->first];
        at->second = before == now.begin()->second ? at->second + 1 : 1;
        before = now.begin()->second;
        if (at->second < kLooksAlike) {
          ++at;
          continue;
        }
        differing_.push_back(at->first);
        at = unchanged.erase(at);
      }
    }
    for (const auto& [offset, unused] : unchanged) busy_.push_back(offset);
    return {};
  }

  std::vector<Observer> replicas_;
  const Geometry geometry_;
  std::map<std::uint64_t, AllDigests> chunks_, blocks_;  // by offset
  std::vector<std::uint64_t> differing_, busy_;
};

// A replica's status.
struct View {
  std::string volume;
  Geometry geometry;
  unsigned place = 0, count = 0;
  std::tuple<std::uint64_t, std::uint64_t, std::uint64_t> order;  // of its configuration
  std::vector<unsigned> members;                                  // of its configuration
};

wire::Result<View> view_of(const std::string& address, const nlohmann::json& s) {
  try {
    View v;
    s.at("volume").get_to(v.volume);
    v.geometry = {s.at("size"), s.at("block"), s.at("chunk")};
    s.at("place").get_to(v.place);
    s.at("count").get_to(v.count);
    const auto& config = s.at("config");
    v.order = {config.at("epoch").get<std::uint64_t>(), config.at("writer").get<std::uint64_t>(),
               config.at("version").get<std::uint64_t>()};
    config.at("members").get_to(v.members);
    if (v.geometry.block > 0 && v.geometry.chunk > 0 && v.geometry.chunk <= kAtOnce) return v;
  } catch (const nlohmann::json::exception&) {
  }
  return wire::fail(
      wire::ErrorCode::kRefused,
      address + ": its status is of another version; use programs of one Cepheus version");
}

// The reason why these are not all replicas of the volume, each once; empty if they are. Before the
// first writer came, no replica has a place.
std::string incomplete(const std::vector<Observer>& replicas, const std::vector<View>& all) {
  const unsigned count = std::ranges::max(all, {}, &View::count).count;
  std::map<unsigned, std::string> addresses;  // by place
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string& address = replicas[i].address();
    if (std::ranges::count(replicas, address, &Observer::address) > 1) {
      return address + " is named twice; name each replica once in --replicas";
    }
    if (count == 0) continue;
    if (all[i].count == 0) {
      return address + " has no number yet: it has one once a writer has connected to it";
    }
    const auto [first, is_new] = addresses.emplace(all[i].place, address);
    if (!is_new) {
      return first->second + " and " + address + " are both replica " +
             std::to_string(all[i].place + 1) + "; name one of them";
    }
  }
  for (unsigned place = 0; place < count; ++place) {
    if (addresses.contains(place)) continue;
    return "replica " + std::to_string(place + 1) + " of " + std::to_string(count) +
           " is missing; name all of the volume's replicas in --replicas";
  }
  return "";
}

// Replicas outside the latest configuration: they may lack anything.
std::vector<std::string> out_of_sync(const std::vector<Observer>& replicas,
                                     const std::vector<View>& all) {
  const auto& members = std::ranges::max_element(all, {}, &View::order)->members;
  std::vector<std::string> out;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool is_named = std::ranges::find(members, all[i].place) != members.end();
    if (all[i].count != 0 && !is_named) out.push_back(replicas[i].address());
  }
  return out;
}

int unknown(const std::string& why) {
  std::cerr << "cepheus-replica: " << why << "\n";
  return kUnknown;
}

}  // namespace

int check_volume(const std::string& volume, const std::vector<std::string>& addresses) {
  const auto key = VolumeKey::from_environment();
  if (!key) return unknown(key.error().text);
  std::vector<Observer> replicas;
  std::vector<View> all;
  for (const std::string& address : addresses) {
    auto replica = Observer::connect(address, *key);
    if (!replica) return unknown(replica.error().text);
    auto status = replica->status();
    if (!status) return unknown(status.error().text);
    auto view = view_of(address, *status);
    if (!view) return unknown(view.error().text);
    if (view->volume != volume) {
      return unknown(address + " serves volume '" + wire::printable(view->volume) +
                     "'; correct --volume or --replicas");
    }
    replicas.push_back(std::move(*replica));
    all.push_back(std::move(*view));
  }
  const Geometry geometry = all[0].geometry;
  for (const View& view : all) {
    if (view.geometry != geometry) {
      return unknown("the replicas have different sizes or blocks; check --replicas");
    }
  }
  if (const auto why = incomplete(replicas, all); !why.empty()) return unknown(why);
  const auto behind = out_of_sync(replicas, all);
  for (const std::string& address : behind) {
    std::cout << address
              << " is not in sync: a writer copies the missing blocks while it is connected\n";
  }
  if (!behind.empty()) return kDiffers;
  Check check(std::move(replicas), geometry);
  if (auto done = check.run(); !done) return unknown(done.error().text);
  return check.report();
}

}  // namespace cepheus::replica
