// Two plain verbs processes that try each operation on each other: the lab's interoperation matrix.
//
//   verbs_pair server|client DEVICE PORT [TRAFFIC CLASS]
//
// Their packets have that traffic class, 0 by default. They meet on TCP port PORT of 127.0.0.1 and
// go through the same list of cells in step, each with queue pairs of its own. The client prints a
// line per cell, "NAME ok" or "NAME FAILED: why", and both exit 1 if a cell failed. It works with
// any NIC; every wait is bounded.
#include <arpa/inet.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "tests/lab/connected_queue.h"

namespace {

using namespace cepheus::lab;

struct Side {
  bool server;
  Device& device;
  Line& line;
};

constexpr std::uint32_t kUsualPsn = 0x123456;
constexpr std::size_t kSizes[] = {1, 33, 1024, 4096, 4097, 100'000};

void send(const Side& side, ibv_wr_opcode opcode, std::uint32_t psn) {
  Queue queue(side.device, side.line, IBV_QPT_RC, psn);
  for (const std::size_t size : kSizes) {
    if (side.server) queue.post_receive(0, kBuffer);
    side.line.meet();
    if (side.server) {
      const ibv_wc wc = queue.complete();
      require(wc.byte_len == size, "a wrong length");
      const bool with_imm = opcode == IBV_WR_SEND_WITH_IMM;
      require(!with_imm || (wc.wc_flags & IBV_WC_WITH_IMM) != 0, "no immediate data");
      require(!with_imm || ntohl(wc.imm_data) == 0xCAFE0000 + size, "wrong immediate data");
      queue.expect(0, size, size);
    } else {
      queue.fill(0, size, size);
      queue.post(opcode, 0, size, [&](ibv_send_wr& wr) {
        wr.imm_data = htonl(static_cast<std::uint32_t>(0xCAFE0000 + size));
      });
      queue.complete();
    }
    side.line.meet();
  }
}

void write(const Side& side, ibv_wr_opcode opcode) {
  Queue queue(side.device, side.line, IBV_QPT_RC, kUsualPsn);
  const bool with_imm = opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  for (const std::size_t size : kSizes) {
    if (side.server && with_imm) queue.post_receive(0, 0);
    side.line.meet();
    if (!side.server) {
      queue.fill(64, size, size);
      queue.post(opcode, 64, size, [](ibv_send_wr& wr) { wr.imm_data = htonl(7); });
      queue.complete();
    } else if (with_imm) {
      require(ntohl(queue.complete().imm_data) == 7, "wrong immediate data");
    }
    side.line.meet();
    if (side.server) queue.expect(64, size, size);
  }
}

void read(const Side& side) {
  Queue queue(side.device, side.line, IBV_QPT_RC, kUsualPsn);
  for (const std::size_t size : kSizes) {
    if (side.server) queue.fill(128, size, size + 1);
    side.line.meet();
    if (!side.server) {
      queue.post(IBV_WR_RDMA_READ, 128, size);
      queue.complete();
      queue.expect(128, size, size + 1);
    }
    side.line.meet();
  }
}

void atomic(const Side& side, ibv_wr_opcode opcode) {
  Queue queue(side.device, side.line, IBV_QPT_RC, kUsualPsn);
  std::uint64_t value = 40;
  if (side.server) std::memcpy(queue.at(256), &value, sizeof value);
  side.line.meet();
  for (std::uint64_t round = 0; round < 4 && !side.server; ++round) {
    queue.post(opcode, 0, 8, [&](ibv_send_wr& wr) {
      wr.wr.atomic.remote_addr = queue.peer.address + 256;
      wr.wr.atomic.rkey = queue.peer.rkey;
      wr.wr.atomic.compare_add = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? 3 : 40 + 3 * round;
      wr.wr.atomic.swap = 43 + 3 * round;
    });
    queue.complete();
    std::memcpy(&value, queue.at(0), sizeof value);
    require(value == 40 + 3 * round, "a wrong old value");
  }
  side.line.meet();
  std::memcpy(&value, queue.at(256), sizeof value);
  require(!side.server || value == 52, "a wrong value in the end");
}

void receiver_not_ready(const Side& side) {
  Queue queue(side.device, side.line, IBV_QPT_RC, kUsualPsn);
  if (side.server) {
    side.line.meet();  // the client's wait has ended
    queue.post_receive(0, kBuffer);
    require(queue.complete().byte_len == 5000, "a wrong length");
    queue.expect(0, 5000, 9);
  } else {
    queue.fill(0, 5000, 9);
    queue.post(IBV_WR_SEND, 0, 5000);
    ibv_wc wc{};
    require(!queue.poll_for(std::chrono::milliseconds(50), wc), "completed without a receive");
    side.line.meet();
    queue.complete();
  }
  side.line.meet();
}

void datagrams(const Side& side) {
  Queue queue(side.device, side.line, IBV_QPT_UD, kUsualPsn);
  constexpr int kAttempts = 40;  // links may lose some
  for (const std::size_t size : {std::size_t{1}, std::size_t{1000}, std::size_t{4096}}) {
    bool arrived = false;
    for (int attempt = 0; attempt < kAttempts && !arrived; ++attempt) {
      if (side.server && attempt == 0) queue.post_receive(0, kGrh + size);
      side.line.meet();
      if (!side.server) {
        queue.fill(0, size, size);
        queue.post(IBV_WR_SEND, 0, size);
        queue.complete();
        arrived = side.line.receive_value<char>() != 0;
        continue;
      }
      ibv_wc wc{};
      arrived = queue.poll_for(std::chrono::milliseconds(1000), wc);
      side.line.send_value(static_cast<char>(arrived));
      if (!arrived) continue;
      require(wc.status == IBV_WC_SUCCESS && wc.byte_len == kGrh + size, "a wrong length");
      require(wc.src_qp == queue.peer.qpn, "a wrong source");
      queue.expect(kGrh, size, size);
    }
    require(arrived, "no datagram of " + std::to_string(size) + " bytes arrived");
  }
}

struct Cell {
  const char* name;
  std::function<void(const Side&)> run;
};

const std::vector<Cell>& cells() {
  static const std::vector<Cell> all = {
      {"RC send", [](const Side& s) { send(s, IBV_WR_SEND, kUsualPsn); }},
      {"RC send, immediate", [](const Side& s) { send(s, IBV_WR_SEND_WITH_IMM, kUsualPsn); }},
      {"RC write", [](const Side& s) { write(s, IBV_WR_RDMA_WRITE); }},
      {"RC write, immediate", [](const Side& s) { write(s, IBV_WR_RDMA_WRITE_WITH_IMM); }},
      {"RC read", read},
      {"RC fetch and add", [](const Side& s) { atomic(s, IBV_WR_ATOMIC_FETCH_AND_ADD); }},
      {"RC compare and swap", [](const Side& s) { atomic(s, IBV_WR_ATOMIC_CMP_AND_SWP); }},
      {"RC receiver not ready", receiver_not_ready},
      {"RC PSN wrap", [](const Side& s) { send(s, IBV_WR_SEND, 0xFFFFF0); }},
      {"UD", datagrams},
  };
  return all;
}

std::string attempt(const Cell& cell, const Side& side) {
  try {
    cell.run(side);
    return "ok";
  } catch (const std::exception& error) {
    return std::string("FAILED: ") + error.what();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) {
    std::fputs("usage: verbs_pair server|client DEVICE PORT [TRAFFIC CLASS]\n", stderr);
    return 2;
  }
  const bool server = std::string(argv[1]) == "server";
  try {
    Device device(argv[2]);
    if (argc == 5) device.traffic_class = static_cast<std::uint8_t>(std::atoi(argv[4]));
    Line line(server, static_cast<std::uint16_t>(std::atoi(argv[3])));
    for (const Cell& cell : cells()) {
      const std::string outcome = attempt(cell, {server, device, line});
      std::printf("%s: %s\n", cell.name, outcome.c_str());
      std::fflush(stdout);
      if (outcome != "ok") return 1;  // the two are no longer in step
    }
  } catch (const std::exception& error) {
    std::printf("FAILED: %s\n", error.what());
    return 1;
  }
  return 0;
}
