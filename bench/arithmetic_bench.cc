// One packet of 4 KiB combined with another one, for each operation and type; beside that a copy of a
// packet. Both are in the nearest cache.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "arithmetic/combine.h"

namespace {

using namespace cepheus::arithmetic;

constexpr std::size_t kPacket = 4096;

// No value grows without end, is subnormal, or NaN: operands are 0 and 1. The packets' places in their
// pages differ: some processors take a load for one that needs an earlier store at the same place.
struct Packets {
  explicit Packets(Type type)
      : memory(4 * kPacket), result(place(0)), operand(place(kPacket * 3 / 2)) {
    for (std::size_t i = 0; i < kPacket; i += size_of(type)) {
      const bool is_one = (i / size_of(type)) % 3 == 0;
      if (!is_one) continue;
      const float single = 1;
      const double twice = 1;
      if (type == Type::kFloat) {
        std::memcpy(&operand[i], &single, sizeof single);
      } else if (type == Type::kDouble) {
        std::memcpy(&operand[i], &twice, sizeof twice);
      } else {
        operand[i] = 1;
      }
    }
  }

  std::vector<std::uint8_t> memory;
  std::uint8_t *const result, *const operand;

 private:
  // In a page that begins in the memory.
  std::uint8_t* place(std::size_t offset) {
    const auto first = reinterpret_cast<std::uintptr_t>(memory.data());
    return memory.data() + (kPacket - first % kPacket) % kPacket + offset;
  }
};

void copy(benchmark::State& state) {
  Packets packets(Type::kUint8);
  for (auto _ : state) {
    std::memcpy(packets.result, packets.operand, kPacket);
    benchmark::ClobberMemory();
  }
}

void combine(benchmark::State& state, Operation operation, Type type) {
  Packets packets(type);
  const auto combiner = *Combiner::find(operation, type);
  for (auto _ : state) {
    Batch(combiner).combine(packets.result, packets.operand, kPacket);
    benchmark::ClobberMemory();
  }
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::RegisterBenchmark("copy/bytes", copy);
  for (std::size_t operation = 1; operation < kOperations; ++operation) {
    for (std::size_t type = 0; type < kTypes; ++type) {
      const auto op = static_cast<Operation>(operation);
      const auto of = static_cast<Type>(type);
      if (!Combiner::find(op, of)) continue;
      const std::string title = std::string(name(op)) + '/' + name(of);
      benchmark::RegisterBenchmark(title.c_str(), combine, op, of);
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
