#include "replica/server/peers.h"

#include <poll.h>

#include <algorithm>

#include "wire/clock.h"

namespace cepheus::replica {

constexpr wire::Duration kGreeting = std::chrono::seconds(5);

bool Peer::can_go_on() const {
  return has_more && !is_digesting && (socket.events() & POLLOUT) == 0;
}

short Peer::events() const {
  const bool must_read_first = has_more && !can_go_on();
  const int wanted = is_digesting ? 0 : must_read_first ? POLLOUT : POLLIN | POLLOUT;
  return static_cast<short>(socket.events() & wanted);
}

std::optional<std::uint64_t> Peers::one_to_give_way() const {
  auto at = std::ranges::find_if(*this, [](const auto& each) { return !each.second.hello; });
  if (at == end()) {
    at = std::ranges::find_if(
        *this, [](const auto& each) { return each.second.hello->role == Role::kObserver; });
  }
  return at == end() ? std::nullopt : std::optional(at->first);
}

void Peers::add(wire::UniqueFd connection) {
  Peer peer{FrameSocket(std::move(connection), kMostGreeting), random_nonce(),
            wire::monotonic_now() + kGreeting};
  encode(Challenge{kControlVersion, peer.nonce}, peer.socket.out());
  if (peer.socket.flush()) emplace(++links_, std::move(peer));
}

}  // namespace cepheus::replica
