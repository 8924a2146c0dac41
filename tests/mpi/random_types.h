// Random datatypes for the programs in this folder: structs, vectors, indexed types, subarrays,
// distributed arrays, resized ones, of negative bounds, with gaps, in any order in memory. Each is
// built beside a list of its elements (`Map`), independently of MPI.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <utility>
#include <vector>

#include "tests/mpi/pattern.h"

namespace random_types {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(mix(seed)) {}
  std::uint64_t next() { return state_ = mix(state_); }
  int below(int n) { return static_cast<int>(next() % static_cast<std::uint64_t>(n)); }
  int between(int low, int high) { return low + below(high - low + 1); }
  bool one_in(int n) { return below(n) == 0; }

 private:
  std::uint64_t state_;
};

struct Basic {
  MPI_Datatype type;
  int size;  // bytes
};

// A type's content: its basic elements in order, at displacements in bytes; and its bounds.
struct Element {
  Basic basic;
  MPI_Aint at;
};
struct Map {
  std::vector<Element> elements;
  MPI_Aint lower = 0, upper = 0;

  MPI_Aint extent() const { return upper - lower; }
  MPI_Aint bytes() const {
    return std::accumulate(elements.begin(), elements.end(), MPI_Aint{0},
                           [](MPI_Aint sum, const Element& e) { return sum + e.basic.size; });
  }
  MPI_Aint first() const {
    return std::min_element(elements.begin(), elements.end(),
                            [](const Element& a, const Element& b) { return a.at < b.at; })
        ->at;
  }
  MPI_Aint last() const {  // one behind the last byte
    MPI_Aint end = elements.front().at;
    for (const Element& e : elements) end = std::max<MPI_Aint>(end, e.at + e.basic.size);
    return end;
  }
  void append(const Map& other, MPI_Aint at) {
    for (Element e : other.elements) elements.push_back({e.basic, e.at + at});
  }
};

// An MPI type beside its map. Owns the type unless it is a basic one.
class Type {
 public:
  Type(MPI_Datatype type, Map map, bool basic) : type_(type), map_(std::move(map)), basic_(basic) {}
  Type(Type&& other) noexcept
      : type_(std::exchange(other.type_, MPI_DATATYPE_NULL)),
        map_(std::move(other.map_)),
        basic_(other.basic_) {}
  Type& operator=(Type&& other) noexcept {
    std::swap(type_, other.type_);
    std::swap(map_, other.map_);
    std::swap(basic_, other.basic_);
    return *this;
  }
  ~Type() {
    if (type_ != MPI_DATATYPE_NULL && !basic_) MPI_Type_free(&type_);
  }
  MPI_Datatype mpi() const { return type_; }
  const Map& map() const { return map_; }

 private:
  MPI_Datatype type_;
  Map map_;
  bool basic_;
};

inline std::vector<Basic> basics() {
  return {
    {MPI_CHAR, 1}, {MPI_SHORT, 2}, {MPI_INT, 4}, {MPI_FLOAT, 4}, {MPI_DOUBLE, 8},
        {MPI_LONG_LONG, 8}, {MPI_BYTE, 1}, {MPI_UINT16_T, 2},
// Open MPI 5.0's own MPI_Pack takes the wrong bytes if such complex numbers have gaps between them
// (all of 24 bytes, for instance), and leaves out a long double's padding.
#if OMPI_MAJOR_VERSION < 5
        {MPI_C_DOUBLE_COMPLEX, 16},
#endif
// MPICH leaves out a long double's padding, too.
#if OMPI_MAJOR_VERSION < 5 && !defined(MPICH_VERSION)
        {MPI_LONG_DOUBLE, 16},
#endif
  };
}

using Signature = std::vector<Basic>;

inline Signature make_signature(Random& random) {
  static const std::vector<Basic> all = basics();
  Signature signature;
  const int runs = random.between(1, 4);
  for (int run = 0; run < runs; run++) {
    const Basic basic = all[static_cast<std::size_t>(random.below(static_cast<int>(all.size())))];
    signature.insert(signature.end(), static_cast<std::size_t>(random.between(1, 5)), basic);
  }
  return signature;
}

inline bool is_uniform(const Signature& signature) {
  return std::all_of(signature.begin(), signature.end(),
                     [&](const Basic& b) { return b.type == signature.front().type; });
}

class TypeMaker {
 public:
  TypeMaker(Random& random, bool may_overlap) : random_(random), may_overlap_(may_overlap) {}

  Type make(const Signature& signature) {
    Type type = signature.size() == 1                         ? leaf(signature.front())
                : is_uniform(signature) && !random_.one_in(4) ? array(signature)
                                                              : structure(signature);
    return random_.one_in(3) ? resized(std::move(type)) : std::move(type);
  }

  // `count` of the type in an order of memory of its own: items lie side by side, or interleaved.
  Type item(const Signature& signature) {
    Type type = make(signature);
    if (!may_overlap_ || !random_.one_in(3)) return apart(std::move(type));
    const MPI_Aint span = std::max<MPI_Aint>(1, type.map().last() - type.map().first());
    return resize(std::move(type), type.map().lower,
                  static_cast<MPI_Aint>(random_.below(static_cast<int>(span))));
  }

 private:
  int gap() { return random_.one_in(2) ? 0 : random_.between(1, 13); }

  static Type leaf(const Basic& basic) {
    Map map;
    map.elements = {{basic, 0}};
    map.upper = basic.size;
    return {basic.type, std::move(map), true};
  }

  Type structure(const Signature& signature) {
    // Splits it into parts, placed in memory in any order.
    std::vector<Type> parts;
    for (std::size_t at = 0; at < signature.size();) {
      const auto left = static_cast<int>(signature.size() - at);
      const auto n = static_cast<std::size_t>(left == static_cast<int>(signature.size())
                                                  ? random_.between(1, left - 1)
                                                  : random_.between(1, left));
      parts.push_back(make(Signature(signature.begin() + static_cast<std::ptrdiff_t>(at),
                                     signature.begin() + static_cast<std::ptrdiff_t>(at + n))));
      at += n;
    }
    std::vector<std::size_t> order(parts.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t i = order.size(); i > 1; i--)
      std::swap(order[i - 1], order[static_cast<std::size_t>(random_.below(static_cast<int>(i)))]);
    std::vector<MPI_Aint> places(parts.size());
    MPI_Aint end = random_.one_in(3) ? -random_.between(1, 40) : gap();
    for (const std::size_t which : order) {
      const Map& map = parts[which].map();
      if (may_overlap_ && random_.one_in(4))
        end -= random_.below(static_cast<int>(map.last() - map.first()) + 1);
      places[which] = end - map.first();
      end += map.last() - map.first() + gap();
    }
    std::vector<int> ones(parts.size(), 1);
    std::vector<MPI_Datatype> types;
    Map map;
    for (std::size_t i = 0; i < parts.size(); i++) {
      types.push_back(parts[i].mpi());
      map.append(parts[i].map(), places[i]);
    }
    MPI_Datatype made;
    MPI_Type_create_struct(static_cast<int>(parts.size()), ones.data(), places.data(), types.data(),
                           &made);
    return with_bounds(made, std::move(map));
  }

  // Several of one basic type.
  Type array(const Signature& signature) {
    const int n = static_cast<int>(signature.size());
    const Basic basic = signature.front();
    MPI_Datatype made;
    std::vector<MPI_Aint> at(static_cast<std::size_t>(n));
    switch (random_.below(6)) {
      case 0:
        MPI_Type_contiguous(n, basic.type, &made);
        for (int i = 0; i < n; i++) at[static_cast<std::size_t>(i)] = MPI_Aint{i} * basic.size;
        break;
      case 1: {
        // Open MPI 4.1 packs a vector of stride -1 as if it ran upwards.
        const int stride = random_.one_in(4) ? -random_.between(2, 4) : random_.between(1, 4);
        MPI_Type_vector(n, 1, stride, basic.type, &made);
        for (int i = 0; i < n; i++)
          at[static_cast<std::size_t>(i)] = MPI_Aint{i} * stride * basic.size;
        break;
      }
      case 2: {
        const MPI_Aint stride = basic.size + gap();
        MPI_Type_create_hvector(n, 1, stride, basic.type, &made);
        for (int i = 0; i < n; i++) at[static_cast<std::size_t>(i)] = i * stride;
        break;
      }
      case 3:
        return indexed(basic, at);
      case 4:
        return subarray(basic, at);
      default:
        return distributed(basic, at);
    }
    return with_bounds(made, elements(basic, at));
  }

  Type indexed(const Basic& basic, std::vector<MPI_Aint>& at) {
    const int n = static_cast<int>(at.size());
    MPI_Datatype made;
    std::vector<int> lengths, places;
    for (int left = n, place = random_.between(-3, 3); left > 0;) {
      const int length = random_.between(1, left);
      lengths.push_back(length);
      places.push_back(place);
      for (int i = 0; i < length; i++)
        at[static_cast<std::size_t>(n - left + i)] = MPI_Aint{place + i} * basic.size;
      left -= length;
      place += length + random_.below(3);
    }
    MPI_Type_indexed(static_cast<int>(lengths.size()), lengths.data(), places.data(), basic.type,
                     &made);
    return with_bounds(made, elements(basic, at));
  }

  // A row of n in an array of three rows, or a column of it.
  Type subarray(const Basic& basic, std::vector<MPI_Aint>& at) {
    const int n = static_cast<int>(at.size());
    MPI_Datatype made;
    const bool row = random_.one_in(2);
    const std::array<int, 2> sizes = row ? std::array{3, n + 2} : std::array{n + 1, 4};
    const std::array<int, 2> part = row ? std::array{1, n} : std::array{n, 1};
    const std::array<int, 2> start = {1, 1};
    const bool c_order = random_.one_in(2);
    MPI_Type_create_subarray(2, sizes.data(), part.data(), start.data(),
                             c_order ? MPI_ORDER_C : MPI_ORDER_FORTRAN, basic.type, &made);
    for (int i = 0; i < n; i++) {
      const int first = start[0] + (row ? 0 : i), second = start[1] + (row ? i : 0);
      at[static_cast<std::size_t>(i)] =
          basic.size * MPI_Aint{c_order ? first * sizes[1] + second : first + second * sizes[0]};
    }
    Map map = elements(basic, at);
    map.upper = MPI_Aint{sizes[0]} * sizes[1] * basic.size;
    return {made, std::move(map), false};
  }

  // This process's part of a row that two or three processes share, dealt out in blocks.
  Type distributed(const Basic& basic, std::vector<MPI_Aint>& at) {
    const int n = static_cast<int>(at.size());
    MPI_Datatype made;
    const int processes = random_.between(2, 3), mine = random_.below(processes),
              block = random_.between(1, 3);
    std::vector<int> owned;
    int total = 0;
    for (; static_cast<int>(owned.size()) < n; total++) {
      if (total / block % processes == mine) owned.push_back(total);
    }
    const int distribution = MPI_DISTRIBUTE_CYCLIC;
    MPI_Type_create_darray(processes, mine, 1, &total, &distribution, &block, &processes,
                           MPI_ORDER_C, basic.type, &made);
    for (int i = 0; i < n; i++)
      at[static_cast<std::size_t>(i)] = MPI_Aint{owned[static_cast<std::size_t>(i)]} * basic.size;
    Map map = elements(basic, at);
    map.upper = MPI_Aint{total} * basic.size;
    return {made, std::move(map), false};
  }

  static Map elements(const Basic& basic, const std::vector<MPI_Aint>& at) {
    Map map;
    for (const MPI_Aint place : at) map.elements.push_back({basic, place});
    return map;
  }

  // MPI pads a struct's upper bound for alignment in its own way: it is queried instead of guessed.
  static Type with_bounds(MPI_Datatype made, Map map) {
    const MPI_Aint lower = map.first(), extent = map.last() - map.first();
    return resize({made, std::move(map), false}, lower, extent);
  }

  static Type resize(Type type, MPI_Aint lower, MPI_Aint extent) {
    MPI_Datatype made;
    MPI_Type_create_resized(type.mpi(), lower, extent, &made);
    Map map = type.map();
    map.lower = lower;
    map.upper = lower + extent;
    return {made, std::move(map), false};
  }

  Type resized(Type type) {
    const MPI_Aint lower = type.map().first() - random_.below(9);
    return resize(std::move(type), lower, type.map().last() - lower + gap());
  }

  Type apart(Type type) {
    const MPI_Aint lower = type.map().lower - (random_.one_in(4) ? random_.below(32) : 0);
    return resize(std::move(type), lower, type.map().last() - type.map().first() + gap());
  }

  Random& random_;
  const bool may_overlap_;
};

// `count` items of a type in memory of their own, between guard bytes.
class Buffer {
 public:
  static constexpr MPI_Aint kMargin = 64;

  Buffer(const Map& map, MPI_Aint count)
      : low_(std::min<MPI_Aint>(map.first(), map.first() + (count - 1) * map.extent()) - kMargin),
        high_(std::max<MPI_Aint>(map.last(), map.last() + (count - 1) * map.extent()) + kMargin),
        bytes_(static_cast<std::size_t>(high_ - low_), 0xEE) {}
  unsigned char* origin() { return bytes_.data() - low_; }  // address for MPI
  std::vector<unsigned char>& bytes() { return bytes_; }

 private:
  MPI_Aint low_, high_;
  std::vector<unsigned char> bytes_;
};

// Element after element of `count` items.
class Walk {
 public:
  Walk(const Map& map, unsigned char* origin) : map_(map), item_(origin) {}
  unsigned char* next() {
    unsigned char* const at = item_ + map_.elements[index_].at;
    if (++index_ == map_.elements.size()) {
      index_ = 0;
      item_ += map_.extent();
    }
    return at;
  }

 private:
  const Map& map_;
  unsigned char* item_;
  std::size_t index_ = 0;
};

struct Side {
  Type type;
  int count;
};

}  // namespace random_types
