// Doubly linked list with links in the elements: membership costs no allocation, removal no
// search.
#pragma once

#include <cassert>
#include <cstddef>

namespace cepheus::rnic {

template <typename T>
struct ListHook {
  T* previous = nullptr;
  T* next = nullptr;
  bool linked = false;
};

// The list does not own its elements; an element leaves it before it dies.
template <typename T, ListHook<T> T::*kHook>
class IntrusiveList {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  T* front() const { return head_; }
  static bool contains(const T& element) { return (element.*kHook).linked; }

  void push_back(T& element) {
    ListHook<T>& hook = element.*kHook;
    assert(!hook.linked);
    hook = {.previous = tail_, .next = nullptr, .linked = true};
    (tail_ == nullptr ? head_ : (tail_->*kHook).next) = &element;
    tail_ = &element;
    ++size_;
  }

  void remove(T& element) {
    ListHook<T>& hook = element.*kHook;
    assert(hook.linked);
    (hook.previous == nullptr ? head_ : (hook.previous->*kHook).next) = hook.next;
    (hook.next == nullptr ? tail_ : (hook.next->*kHook).previous) = hook.previous;
    hook = {};
    --size_;
  }

  // Makes membership equal `wanted`; a member keeps its place.
  void set_member(T& element, bool wanted) {
    if (contains(element) == wanted) return;
    wanted ? push_back(element) : remove(element);
  }

  void move_to_back(T& element) {
    remove(element);
    push_back(element);
  }

 private:
  T* head_ = nullptr;
  T* tail_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace cepheus::rnic
