// Position in the binomial tree whose root is a broadcast's.
#pragma once

#include "ompi-coll/operation.h"

namespace cepheus::coll {

struct Tree {
  int rank, size, root;  // members

  unsigned virtual_rank() const { return static_cast<unsigned>((rank - root + size) % size); }
  int real(unsigned virtual_rank) const {
    return static_cast<int>((virtual_rank + static_cast<unsigned>(root)) %
                            static_cast<unsigned>(size));
  }
  int parent() const { return real(virtual_rank() & (virtual_rank() - 1)); }
  // Calls f(real rank) for each child.
  template <typename F>
  void children(F f) const {
    const unsigned me = virtual_rank();
    for (unsigned bit = 1; me + bit < static_cast<unsigned>(size) && (me & bit) == 0; bit <<= 1)
      f(real(me + bit));
  }
};

inline Tree tree_of(const Call& call) { return {call.team->self(), call.team->size(), call.root}; }

}  // namespace cepheus::coll
