// Binary heap of elements by due time, each element knowing its place: earliest in O(1), change in
// O(log n).
#pragma once

#include <cassert>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "wire/types.h"

namespace cepheus::rnic {

struct TimerSlot {
  static constexpr std::size_t kUnscheduled = std::numeric_limits<std::size_t>::max();
  wire::Instant due = wire::kNever;
  std::size_t index = kUnscheduled;
  bool scheduled() const { return index != kUnscheduled; }
};

// The heap does not own its elements; an element leaves it before it dies. Its vector grows to the
// number of elements and never shrinks: no allocation in steady state.
template <typename T, TimerSlot T::*kSlot>
class TimerHeap {
 public:
  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }
  wire::Instant earliest() const { return heap_.empty() ? wire::kNever : slot(heap_[0]).due; }

  void schedule(T& element, wire::Instant due) {
    TimerSlot& s = element.*kSlot;
    if (!s.scheduled()) {
      s.index = heap_.size();
      heap_.push_back(&element);
    }
    s.due = due;
    sift(s.index);
  }

  void cancel(T& element) {
    TimerSlot& s = element.*kSlot;
    if (!s.scheduled()) return;
    const std::size_t hole = std::exchange(s.index, TimerSlot::kUnscheduled);
    s.due = wire::kNever;
    T* last = heap_.back();
    heap_.pop_back();
    if (last == &element) return;
    place(hole, last);
    sift(hole);
  }

  // Takes the earliest element if it is due, else null.
  T* pop_due(wire::Instant now) {
    if (heap_.empty() || slot(heap_[0]).due > now) return nullptr;
    T* element = heap_[0];
    cancel(*element);
    return element;
  }

  void check_consistent() const {
    for (std::size_t i = 0; i < heap_.size(); ++i) {
      assert(slot(heap_[i]).index == i);
      assert(i == 0 || !earlier(heap_[i], heap_[(i - 1) / 2]));
    }
  }

 private:
  static TimerSlot& slot(T* element) { return element->*kSlot; }
  static bool earlier(T* a, T* b) { return slot(a).due < slot(b).due; }

  void place(std::size_t i, T* element) {
    heap_[i] = element;
    slot(element).index = i;
  }

  // Moves the element at `i` up or down to its place.
  void sift(std::size_t i) {
    T* element = heap_[i];
    while (i > 0 && earlier(element, heap_[(i - 1) / 2])) {
      place(i, heap_[(i - 1) / 2]);
      i = (i - 1) / 2;
    }
    for (std::size_t child = 2 * i + 1; child < heap_.size(); child = 2 * i + 1) {
      if (child + 1 < heap_.size() && earlier(heap_[child + 1], heap_[child])) ++child;
      if (!earlier(heap_[child], element)) break;
      place(i, heap_[child]);
      i = child;
    }
    place(i, element);
  }

  std::vector<T*> heap_;
};

}  // namespace cepheus::rnic
