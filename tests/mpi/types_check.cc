// Broadcasts of random datatypes, blocking and not: every byte of a type and every gap in it is
// checked on every rank. Plain MPI.
//
//   mpirun ... types_check [--count N] [--seed S] [--first I] [--large EVERY]
//
// Case i depends on (seed, i) alone, so `--seed S --first I --count 1` repeats it. Each case has
// one signature: a row of basic types. Every rank has its own type of that signature
// (random_types.h); the root's may overlap. Sizes lie around 8 KiB and 64 KiB, and in one of EVERY
// cases (default 1000; 0: never) around 64 MiB. Exit 0 and a line "ok: ..."; else 1, the case and
// the first wrong byte.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "tests/mpi/random_types.h"

namespace {

using namespace random_types;

class Case {
 public:
  Case(std::uint64_t key, int size, int large_every, long index) : random_(key), key_(key) {
    signature_ = make_signature(random_);
    for (const Basic& basic : signature_) bytes_of_one_ += basic.size;
    root_ = random_.below(size);
    blocking_ = random_.one_in(2);
    const MPI_Aint kKiB = 1024;
    MPI_Aint boundary = (random_.one_in(2) ? 8 : 64) * kKiB;
    if (random_.one_in(4)) boundary = 8 * kKiB * random_.between(1, 9);
    if (random_.one_in(8)) boundary = random_.between(1, 2000);
    if (large_every > 0 && index % large_every == large_every - 1) boundary = 64 * kKiB * kKiB;
    const MPI_Aint target = std::max<MPI_Aint>(1, boundary + random_.between(-64, 64));
    total_ = std::max<MPI_Aint>(1, target / bytes_of_one_ + random_.between(-1, 1));
  }
  bool blocking() const { return blocking_; }
  int root() const { return root_; }

  // A rank's arguments of MPI_Bcast; the same on every rank that calls it.
  Side side(int rank) const {
    Random random(key_ + 1 + static_cast<std::uint64_t>(rank));
    // Some signatures in a row make one item.
    int in_a_row = 1;
    if (random.one_in(2)) {
      for (const int n : {7, 6, 5, 4, 3, 2}) {
        if (total_ % n == 0 && random.one_in(2)) {
          in_a_row = n;
          break;
        }
      }
    }
    Signature signature;
    for (int i = 0; i < in_a_row; i++)
      signature.insert(signature.end(), signature_.begin(), signature_.end());
    Type type = TypeMaker(random, rank == root_).item(signature);
    MPI_Datatype committed = type.mpi();
    MPI_Type_commit(&committed);
    return {std::move(type), static_cast<int>(total_ / in_a_row)};
  }

  // The root's memory, gaps and all.
  void fill_root(Buffer& buffer) const { fill(buffer.bytes().data(), buffer.bytes().size(), key_); }

  // The expected content of a receiver's memory afterwards.
  void deliver(const Side& from, Buffer& source, const Side& to, Buffer& expected) const {
    Walk reads(from.type.map(), source.origin()), writes(to.type.map(), expected.origin());
    for (MPI_Aint one = 0; one < total_; one++) {
      for (const Basic& basic : signature_)
        std::memcpy(writes.next(), reads.next(), static_cast<std::size_t>(basic.size));
    }
  }

  std::string text(const Side& mine) const {
    return std::to_string(total_ * bytes_of_one_) + " bytes from rank " + std::to_string(root_) +
           (blocking_ ? "" : ", non-blocking") + ", here " + std::to_string(mine.count) +
           " items of " + std::to_string(mine.type.map().elements.size()) + " elements, extent " +
           std::to_string(mine.type.map().extent());
  }

 private:
  Random random_;
  std::uint64_t key_;
  Signature signature_;
  MPI_Aint bytes_of_one_ = 0;
  MPI_Aint total_ = 0;  // signatures
  int root_ = 0;
  bool blocking_ = true;
};

// One case, checked; 0 if right.
int run(const Case& test, long index, int rank) {
  const Side mine = test.side(rank);
  Buffer buffer(mine.type.map(), mine.count);
  const bool is_root = rank == test.root();
  const Side roots = is_root ? test.side(rank) : test.side(test.root());
  Buffer source(roots.type.map(), roots.count);
  test.fill_root(source);
  if (is_root) test.fill_root(buffer);
  if (test.blocking()) {
    MPI_Bcast(buffer.origin(), mine.count, mine.type.mpi(), test.root(), MPI_COMM_WORLD);
  } else {
    MPI_Request request;
    MPI_Ibcast(buffer.origin(), mine.count, mine.type.mpi(), test.root(), MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  Buffer expected(mine.type.map(), mine.count);
  if (is_root) {
    test.fill_root(expected);
  } else {
    test.deliver(roots, source, mine, expected);
  }
  const auto& is = buffer.bytes();
  const auto& should = expected.bytes();
  const auto differs = std::mismatch(is.begin(), is.end(), should.begin());
  if (differs.first == is.end()) return 0;
  fprintf(stderr, "types_check: case %ld, rank %d: %s: byte %td of %zu is 0x%02x, not 0x%02x\n",
          index, rank, test.text(mine).c_str(), differs.first - is.begin(), is.size(),
          *differs.first, *differs.second);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  int rank, size, wrong = 0;
  start_mpi(&argc, &argv, &rank, &size);
  const long count = atol(option(argc, argv, "--count", "100"));
  const long first = atol(option(argc, argv, "--first", "0"));
  const int large = atoi(option(argc, argv, "--large", "1000"));
  const std::uint64_t seed = strtoull(option(argc, argv, "--seed", "1"), nullptr, 0);
  for (long i = first; i < first + count; i++)
    wrong |=
        run(Case(mix(seed * 1000003u + static_cast<std::uint64_t>(i)), size, large, i), i, rank);
  const int code = conclude(wrong, "broadcasts of random types", count);
  MPI_Finalize();
  return code;
}
