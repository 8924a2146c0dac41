#include "fabric-sim/checked/reductions/member_pairs.h"

#include <algorithm>
#include <bit>

#include "switch-emulator/engine/views.h"

namespace cepheus::sim {
namespace {

struct Operand {
  wire::Ipv4 lowest;
  std::size_t member = 0;  // has the operand
};

// The pairs of the larger half, a power of two, then of the others, then of both.
std::size_t add_pairs(std::span<const Operand> operands, MemberPairs& out) {
  if (operands.size() == 1) return operands.front().member;
  const std::size_t half = std::bit_ceil(operands.size()) / 2;
  const std::size_t left = add_pairs(operands.first(half), out);
  const std::size_t right = add_pairs(operands.subspan(half), out);
  out.pairs.emplace_back(left, right);
  return left;
}

Operand combine(std::vector<Operand> operands, MemberPairs& out) {
  std::ranges::sort(operands, {}, &Operand::lowest);
  return {operands.front().lowest, add_pairs(operands, out)};
}

class Walk {
 public:
  Walk(const Network& network, wire::McstId id, std::uint16_t epoch,
       std::span<const wire::Ipv4> members)
      : network_(network), id_(id), epoch_(epoch), members_(members) {}

  std::optional<MemberPairs> from_root() {
    for (const auto& node : network_.switches()) {
      const auto view = view_of(node->engine());
      if (!view || !view->reduction->is_root) continue;
      const auto all = at(node->engine(), {});
      const bool is_whole = all && out_.pairs.size() + 1 == members_.size();
      if (!is_whole) return std::nullopt;
      out_.first = all->member;
      return out_;
    }
    return std::nullopt;
  }

 private:
  std::optional<fabric::GroupView> view_of(const fabric::Switch& engine) const {
    auto view = engine.group(id_);
    const bool is_seen = view && view->active && view->epoch == epoch_ && view->reduction;
    return is_seen ? std::move(view) : std::nullopt;
  }
  std::optional<Operand> behind(const fabric::PathView& path, const fabric::Switch& from) {
    if (path.is_host) {
      const auto found = std::ranges::find(members_, path.host);
      if (found == members_.end()) return std::nullopt;
      return Operand{path.host, static_cast<std::size_t>(found - members_.begin())};
    }
    const wire::Ipv4 peer = from.config().ports[path.port.value()].peer;
    for (const auto& node : network_.switches()) {
      if (node->engine().config().address == peer) return at(node->engine(), from.config().address);
    }
    return std::nullopt;
  }
  // All paths but that to the switch `from`.
  std::optional<Operand> at(const fabric::Switch& engine, wire::Ipv4 from) {
    const auto view = view_of(engine);
    if (!view || ++out_.switches > network_.switches().size()) return std::nullopt;
    std::vector<Operand> operands;
    for (const fabric::PathView& path : view->paths) {
      const bool is_back = !path.is_host && engine.config().ports[path.port.value()].peer == from;
      if (is_back) continue;
      const auto one = behind(path, engine);
      if (!one) return std::nullopt;
      operands.push_back(*one);
    }
    if (operands.empty()) return std::nullopt;
    return combine(std::move(operands), out_);
  }

  const Network& network_;
  const wire::McstId id_;
  const std::uint16_t epoch_;
  const std::span<const wire::Ipv4> members_;
  MemberPairs out_;
};

}  // namespace

MemberPairs MemberPairs::by_address(std::span<const wire::Ipv4> members) {
  std::vector<Operand> operands;
  for (std::size_t i = 0; i < members.size(); ++i) operands.push_back({members[i], i});
  MemberPairs out;
  out.first = combine(std::move(operands), out).member;
  return out;
}

std::optional<MemberPairs> MemberPairs::over_tree(const Network& network, wire::McstId id,
                                                  std::uint16_t epoch,
                                                  std::span<const wire::Ipv4> members) {
  return Walk(network, id, epoch, members).from_root();
}

}  // namespace cepheus::sim
