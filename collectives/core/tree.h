// Positions in trees below the broadcast's root. Ranks are members of a team.
#pragma once

namespace cepheus::coll {

struct Position {
  int rank, size, root;

  unsigned virtual_rank() const { return static_cast<unsigned>((rank - root + size) % size); }
  int real(unsigned virtual_rank) const {
    return static_cast<int>((virtual_rank + static_cast<unsigned>(root)) %
                            static_cast<unsigned>(size));
  }
};

// Binomial: data goes down it.
struct Tree : Position {
  int parent() const { return real(virtual_rank() & (virtual_rank() - 1)); }
  // Calls f(real rank) for each child.
  template <typename F>
  void children(F f) const {
    const unsigned me = virtual_rank();
    for (unsigned bit = 1; me + bit < static_cast<unsigned>(size) && (me & bit) == 0; bit <<= 1)
      f(real(me + bit));
  }
};

// Wide and flat, for counts of a few bytes. On each level every rank needs a turn on a core. With
// many ranks that costs more than the messages of a rank's children.
struct FanIn : Position {
  static constexpr unsigned kWidth = 32;

  int parent() const { return real((virtual_rank() - 1) / kWidth); }
  template <typename F>
  void children(F f) const {
    const unsigned first = virtual_rank() * kWidth + 1;
    for (unsigned child = first; child < first + kWidth && child < static_cast<unsigned>(size);
         ++child)
      f(real(child));
  }
};

}  // namespace cepheus::coll
