// A first-in, first-out list of fibers through their own links.
#pragma once

namespace logpjit::runtime {

/// A fiber is in one queue at most. `Fiber` has a member `next`.
template <typename Fiber>
class IntrusiveQueue {
 public:
  bool empty() const { return first_ == nullptr; }
  Fiber* front() const { return first_; }

  void push_back(Fiber& fiber) {
    fiber.next = nullptr;
    (last_ ? last_->next : first_) = &fiber;
    last_ = &fiber;
  }

  /// Null when empty.
  Fiber* pop_front() {
    Fiber* fiber = first_;
    if (fiber == nullptr) return nullptr;
    first_ = fiber->next;
    if (first_ == nullptr) last_ = nullptr;
    return fiber;
  }

  /// Moves all of `other` behind, or before, what is here.
  void splice_back(IntrusiveQueue& other) {
    if (other.empty()) return;
    (last_ ? last_->next : first_) = other.first_;
    last_ = other.last_;
    other.clear();
  }
  void splice_front(IntrusiveQueue& other) {
    if (other.empty()) return;
    other.last_->next = first_;
    if (last_ == nullptr) last_ = other.last_;
    first_ = other.first_;
    other.clear();
  }

  /// Forgets the fibers without touching them.
  void clear() { first_ = last_ = nullptr; }

 private:
  Fiber* first_ = nullptr;
  Fiber* last_ = nullptr;
};

}  // namespace logpjit::runtime
