#include "collectives/core/counters.h"

namespace cepheus::coll {

Counters& counters() {
  static Counters instance;
  return instance;
}

void Counters::add_broadcast(Route route, bool attended) {
  switch (route) {
    case Route::kEager:
      return add(attended ? Which::kEager : Which::kIbcastEager);
    case Route::kBulk:
      return add(attended ? Which::kBulk : Which::kIbcastBulk);
    case Route::kHosts:
      return add(attended ? Which::kHosts : Which::kIbcastHosts);
    case Route::kTree:
      return add(attended ? Which::kSaved : Which::kIbcastTree);
    case Route::kSaved:
      return add(attended ? Which::kSaved : Which::kIbcastSaved);
  }
}

}  // namespace cepheus::coll
