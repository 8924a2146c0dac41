// MPI_Allreduce, MPI_Reduce and their non-blocking forms: each bit of the result is compared with the
// reference of reduction_operations.h, and all memory beside it must be as before.
#pragma once

#include <optional>
#include <string>

#include "tests/mpi/checked_call.h"
#include "tests/mpi/reduction_operations.h"

namespace reductions {

class ReduceCall : public Call {
 public:
  ReduceCall(const Place& place, bool is_all, std::uint64_t key, const Settings& settings,
             bool blocking, int counter)
      : place_(place), key_(key), is_all_(is_all), counter_(counter) {
    Random random(key);
    root_ = random.below(place.size);
    in_place_ = random.one_in(3);
    frees_early_ = random.one_in(2);
    numbers_ = pick(random, all_numbers());
    const bool is_user_defined = random.one_in(3);
    bool has_random_type = is_user_defined && random.one_in(2);
    // Open MPI 4.1's own non-blocking reductions and its MPI_Allreduce in a ring write beyond their
    // memory if a type has gaps.
    const bool needs_network = kOpenMpi && has_random_type && (is_all || !blocking);
    if (needs_network && settings.pairwise_bytes <= 0) has_random_type = false;
    if (has_random_type) {
      TypeMaker maker(random, false);
      own_type_.emplace(maker.item(make_signature(random)));
      map_ = own_type_->map();
      type_ = own_type_->mpi();
    } else {
      map_ = numbers_.map();
      type_ = numbers_.type;
    }
    reference_type_ = type_;
    if (has_random_type) {
      MPI_Type_commit(&type_);
      MPI_Type_dup(type_, &reference_type_);
    }
    if (is_user_defined) {
      Layouts::add(type_, &map_);
      Layouts::add(reference_type_, &map_);
    }
    int bytes = 0;
    MPI_Type_size(type_, &bytes);
    count_ = random_count(random, bytes, place.size);
    if (settings.long_bytes > 0 && random.one_in(3))
      count_ = random.below(1 + static_cast<int>(settings.long_bytes) / bytes);
    while (has_random_type && needs_network && count_ > 0 &&
           MPI_Aint{count_} * bytes * place.size > settings.pairwise_bytes)
      count_ /= 2;
    const bool any_bits = MPI_Aint{count_} * bytes * place.size <= settings.pairwise_bytes;
#ifdef MPICH_VERSION
    // MPICH 4.0's own MPI_Reduce reads from MPI_IN_PLACE in some of its algorithms.
    if (!is_all && !any_bits) in_place_ = false;
#endif
    name_ = has_random_type ? "items of " + std::to_string(bytes) + " bytes, extent " +
                                  std::to_string(map_.extent())
                            : numbers_.name;
    if (is_user_defined) {
      pick_user_defined(random, any_bits);
    } else {
      pick_predefined(random, any_bits);
    }
    values_random_ = is_user_defined;
    any_bits_ = any_bits;
  }
  ~ReduceCall() override {
    free_handles();
    if (reference_op_ != op_source_) MPI_Op_free(&reference_op_);
    if (reference_type_ != numbers_.type) MPI_Type_free(&reference_type_);
    Layouts::remove(&map_);
  }
  ReduceCall(const ReduceCall&) = delete;
  ReduceCall& operator=(const ReduceCall&) = delete;

  void start(MPI_Request* request) override {
    is_blocking_ = request == nullptr;
    const bool takes_part = is_all_ || place_.rank == root_;
    const bool in_place = in_place_ && takes_part;
    send_.emplace(contribution(place_.rank));
    receive_.emplace(in_place ? *send_ : Buffer(map_, count_));
    before_.emplace(*receive_);
    const void* const from = in_place ? MPI_IN_PLACE : send_->origin();
    void* const to = receive_->origin();
    applied_before_ = applications[counter_];
    if (is_all_ && is_blocking_) MPI_Allreduce(from, to, count_, type_, op_, place_.comm);
    if (is_all_ && !is_blocking_)
      MPI_Iallreduce(from, to, count_, type_, op_, place_.comm, request);
    if (!is_all_ && is_blocking_) MPI_Reduce(from, to, count_, type_, op_, root_, place_.comm);
    if (!is_all_ && !is_blocking_)
      MPI_Ireduce(from, to, count_, type_, op_, root_, place_.comm, request);
    if (frees_early_) free_handles();
  }

  void completed() override { applied_ = applications[counter_]; }

  std::string wrong() override {
    std::string why;
    if (counts_) why = wrong_applications();
    if (why.empty())
      why = first_difference(send_->bytes(), Buffer(contribution(place_.rank)).bytes(),
                             "the contribution's memory");
    if (!why.empty()) return why;
    if (!is_all_ && place_.rank != root_)
      return first_difference(receive_->bytes(), before_->bytes(),
                              "memory of another than the root");
    std::vector<Buffer> blocks;
    for (int rank = 0; rank < place_.size; rank++) blocks.push_back(contribution(rank));
    const auto exact_type = numbers_.exact_type();
    if (exact_ != arithmetic::Operation::kNone && exact_type)
      reduce_exactly(blocks, count_, *exact_type, exact_);
    else
      reduce_by_mpi(blocks, count_, reference_type_, reference_op_);
    allow_padding(blocks[0]);
    return first_difference(receive_->bytes(), blocks[0].bytes(), "the result");
  }

  std::string text() const override {
    return std::string(is_blocking_ ? "" : "I") + (is_all_ ? "allreduce" : "reduce") + " of " +
           std::to_string(count_) + " " + name_ + ", " + op_name_ +
           (in_place_ ? ", in place" : "") + (is_all_ ? "" : ", root " + std::to_string(root_));
  }

 private:
  template <typename T>
  static const T& pick(Random& random, const std::vector<T>& all) {
    return all[static_cast<std::size_t>(random.below(static_cast<int>(all.size())))];
  }

  void pick_predefined(Random& random, bool any_bits) {
    const Predefined* it = nullptr;
    do {
      it = &pick(random, all_predefined());
      // A product's zeros may have either sign.
    } while ((it->families & numbers_.family) == 0 ||
             (numbers_.family == kComplex && it->op == MPI_PROD && !any_bits));
    op_ = op_source_ = reference_op_ = it->op;
    op_name_ = it->name;
    exact_ = it->exact;
  }

  void pick_user_defined(Random& random, bool any_bits) {
    struct Choice {
      const char* name;
      MPI_User_function* function;
      bool commutes;
    };
    const Choice choices[] = {
        {"a user's sum", user_function<add>, true},
        {"a user's operation that counts", counting_function_of(counter_), true},
        {"a user's maps", user_function<compose>, false},
        {"a user's order", user_function<order>, random.one_in(2)},
    };
    const Choice& choice = choices[random.below(any_bits ? 4 : 3)];
    counts_ = choice.function == counting_function_of(counter_);
    op_name_ = choice.name;
    MPI_Op_create(choice.function, choice.commutes, &op_);
    MPI_Op_create(choice.function, choice.commutes, &reference_op_);
  }

  // MPI keeps what it needs of them until the call has completed.
  void free_handles() {
    if (op_ != op_source_) MPI_Op_free(&op_);
    op_ = op_source_;
    own_type_.reset();
  }

  Buffer contribution(int rank) const {
    Buffer buffer(map_, count_);
    const std::uint64_t key = key_ + 1 + static_cast<std::uint64_t>(rank);
    if (values_random_) {
      Random random(key);
      Walk walk(map_, buffer.origin());
      for (int i = 0; i < count_; i++)
        for (const Element& element : map_.elements)
          fill(walk.next(), static_cast<std::size_t>(element.basic.size), random.next());
    } else {
      Values values(numbers_, op_source_, any_bits_, key);
      for (int i = 0; i < count_; i++) values.put(buffer.origin() + i * map_.extent());
    }
    return buffer;
  }

  // MPI may write between the parts of a predefined type.
  void allow_padding(Buffer& expected) {
    if (type_ != numbers_.type) return;
    for (MPI_Aint item = 0; item < count_; item++) {
      std::vector<bool> is_element(static_cast<std::size_t>(map_.extent()));
      for (const Element& e : map_.elements)
        std::fill_n(is_element.begin() + e.at, e.basic.size, true);
      const MPI_Aint at = item * map_.extent();
      for (MPI_Aint byte = 0; byte < map_.extent(); byte++)
        if (!is_element[static_cast<std::size_t>(byte)])
          expected.origin()[at + byte] = receive_->origin()[at + byte];
    }
  }

  // All ranks together apply it to each item at least once less than there are ranks; nobody applies
  // it once the call has completed.
  std::string wrong_applications() {
    const bool is_late = applications[counter_] != applied_;
    long all = applied_ - applied_before_, of_another = 0;
    if (place_.rank != 0) MPI_Send(&all, 1, MPI_LONG, 0, 0, place_.talk);
    for (int rank = 1; place_.rank == 0 && rank < place_.size; rank++) {
      MPI_Recv(&of_another, 1, MPI_LONG, rank, 0, place_.talk, MPI_STATUS_IGNORE);
      all += of_another;
    }
    const long least = place_.rank == 0 ? long{count_} * (place_.size - 1) : 0;
    if (is_late) return "the operation was applied after the call had completed";
    if (all >= least) return "";
    return "the operation was applied " + std::to_string(all) + " times, not " +
           std::to_string(least);
  }

  const Place place_;
  const std::uint64_t key_;
  const bool is_all_;
  const int counter_;
  int root_ = 0, count_ = 0;
  bool in_place_ = false, frees_early_ = false, is_blocking_ = true, counts_ = false;
  bool values_random_ = false, any_bits_ = false;
  Numbers numbers_{};
  std::optional<Type> own_type_;
  Map map_;
  MPI_Datatype type_ = MPI_DATATYPE_NULL, reference_type_ = MPI_DATATYPE_NULL;
  MPI_Op op_ = MPI_OP_NULL, reference_op_ = MPI_OP_NULL;
  MPI_Op op_source_ = MPI_OP_NULL;  // the predefined one, which is not freed
  arithmetic::Operation exact_ = arithmetic::Operation::kNone;  // of a predefined one
  std::string name_, op_name_;
  std::optional<Buffer> send_, receive_, before_;
  long applied_before_ = 0, applied_ = 0;
};

}  // namespace reductions
