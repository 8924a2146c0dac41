// The ICRC of a rewritten packet: patched by linearity, or made again.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "wire/icrc.h"
#include "wire/roce.h"

namespace {

using namespace cepheus::wire;

// A SEND as the switch bridges it: addresses, destination QP and PSN differ.
Frame make_frame(const std::vector<std::uint8_t>& payload, std::uint32_t host) {
  RoceHeaders headers;
  headers.ip.source = Ipv4(10, 0, 0, 1);
  headers.ip.destination = Ipv4(host);
  headers.bth.opcode = Opcode::kRcSendMiddle;
  headers.bth.destination_qp = Qpn(host & 0xFFFF);
  headers.bth.psn = Psn(host * 7);
  Frame frame;
  headers.emit(frame, payload.size());
  frame.set_external_payload(payload, 0);
  frame.icrc_state = Icrc::kDeferred;
  seal_icrc(frame);
  return frame;
}

void recompute(benchmark::State& state) {
  const std::vector<std::uint8_t> payload(static_cast<std::size_t>(state.range(0)), 0x5A);
  const Frame frame = make_frame(payload, 0x0A000002);
  for (auto _ : state) benchmark::DoNotOptimize(compute_icrc(frame));
}

void patch(benchmark::State& state) {
  const std::vector<std::uint8_t> payload(static_cast<std::size_t>(state.range(0)), 0x5A);
  const Frame before = make_frame(payload, 0xC6120001);
  const Frame after = make_frame(payload, 0x0A000002);
  if (patch_icrc(before.icrc, before.header(), after.header(), payload.size()) != after.icrc) {
    state.SkipWithError("the patched ICRC is not the recomputed one");
  }
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        patch_icrc(before.icrc, before.header(), after.header(), payload.size()));
  }
}

}  // namespace

BENCHMARK(recompute)->Arg(256)->Arg(1024)->Arg(4096);
BENCHMARK(patch)->Arg(256)->Arg(1024)->Arg(4096);
BENCHMARK_MAIN();
