// One process, a plain verbs program: memory that changes while it is registered.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <optional>

#include "nic-emulator/verbs/test_endpoint.h"

namespace cepheus::verbs {
namespace {

constexpr std::size_t kPage = 4096;
constexpr int kWritable = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

// A queue pair that is its own peer fails as the receiver of its request, before the refusal comes.
constexpr ibv_wc_status kRefused = IBV_WC_WR_FLUSH_ERR;

class OneHost : public ::testing::Test {
 protected:
  // Writes a byte to `address` of a region; the status.
  static std::optional<ibv_wc_status> write(Endpoint& e, std::uint64_t address,
                                            std::uint32_t rkey) {
    const auto to_region = [&](ibv_send_wr& wr) {
      wr.opcode = IBV_WR_RDMA_WRITE;
      wr.wr.rdma = {address, rkey};
    };
    if (e.post_send(1, 0, 1, to_region) != 0) return std::nullopt;
    const auto wc = e.wait();
    if (!wc) return std::nullopt;
    return wc->status;
  }

  SwitchProcess fabric_{1};
};

TEST_F(OneHost, AFileThatIsTruncatedFailsItsRegionAlone) {
  Endpoint e;
  e.connect(e.name());  // to itself
  const int file = ::memfd_create("truncated", 0);
  ASSERT_EQ(::ftruncate(file, kPage), 0);
  void* const memory = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ASSERT_NE(memory, MAP_FAILED);
  ibv_mr* const mr = ibv_reg_mr(e.pd, memory, kPage, kWritable);
  ASSERT_NE(mr, nullptr);
  ASSERT_EQ(::ftruncate(file, 0), 0);
  EXPECT_EQ(write(e, reinterpret_cast<std::uintptr_t>(memory), mr->rkey), kRefused);
  Endpoint other;
  other.connect(other.name());
  EXPECT_EQ(write(other, other.name().address + 8, other.mr->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  ::munmap(memory, kPage);
  ::close(file);
}

TEST_F(OneHost, AZeroBasedRegionIsAddressedByOffsets) {
  Endpoint e;
  e.connect(e.name());  // to itself
  ibv_mr* const based =
      ibv_reg_mr(e.pd, e.memory.data() + 4096, 4096,
                 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED);
  ASSERT_NE(based, nullptr);
  e.memory[0] = 0x5A;
  EXPECT_EQ(write(e, 7, based->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(e.memory[4096 + 7], 0x5A);
  // From then on by addresses.
  ASSERT_EQ(ibv_rereg_mr(based, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, kWritable), 0);
  EXPECT_EQ(write(e, e.name().address + 4096 + 9, based->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(e.memory[4096 + 9], 0x5A);
  EXPECT_EQ(ibv_dereg_mr(based), 0);
}

TEST_F(OneHost, AReregisteredRegionHasANewPlaceRightsOrDomain) {
  Endpoint e;
  e.connect(e.name());  // to itself
  const std::uint64_t base = e.name().address;
  ibv_mr* const mr = ibv_reg_mr(e.pd, e.memory.data() + 100, 100, kWritable);
  ASSERT_NE(mr, nullptr);
  ASSERT_EQ(
      ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, e.memory.data() + 500, 50, 0), 0);
  EXPECT_EQ(mr->addr, e.memory.data() + 500);
  EXPECT_EQ(mr->length, 50u);
  e.memory[0] = 0x5A;
  EXPECT_EQ(write(e, base + 549, mr->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(e.memory[549], 0x5A);

  // Errors leave it as it was.
  ibv_mr* const old = mr;
  EXPECT_EQ(ibv_rereg_mr(old, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, nullptr, 50, 0),
            IBV_REREG_MR_ERR_INPUT);
  EXPECT_EQ(
      ibv_rereg_mr(old, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, IBV_ACCESS_REMOTE_WRITE),
      IBV_REREG_MR_ERR_INPUT);
  EXPECT_EQ(ibv_rereg_mr(old, 0, nullptr, nullptr, 0, 0), IBV_REREG_MR_ERR_INPUT);
  EXPECT_EQ(write(e, base + 500, mr->rkey), IBV_WC_SUCCESS);

  ibv_pd* const other = ibv_alloc_pd(e.context);
  ASSERT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS, other, nullptr, 0,
                         IBV_ACCESS_LOCAL_WRITE),
            0);
  EXPECT_EQ(mr->pd, other);
  EXPECT_EQ(ibv_dealloc_pd(other), EBUSY);
  EXPECT_EQ(write(e, base + 500, mr->rkey), kRefused);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_EQ(ibv_dealloc_pd(other), 0);
}

TEST_F(OneHost, ADatagramQueuePairFailsAReadAndALongSendInItsTurn) {
  for (const bool reads : {true, false}) {
    Endpoint e({.type = IBV_QPT_UD});
    e.start_datagrams();
    ibv_ah_attr to = Endpoint::address_of(e.name());
    ibv_ah* const ah = ibv_create_ah(e.pd, &to);
    ASSERT_NE(ah, nullptr);
    ASSERT_EQ(e.post_send(1, 0, reads ? 8 : 100'000,
                          [&](ibv_send_wr& wr) {
                            if (reads) {
                              wr.opcode = IBV_WR_RDMA_READ;
                              wr.wr.rdma = {e.name().address, e.mr->rkey};
                            } else {
                              wr.wr.ud = {ah, e.qp->qp_num, kQkey};
                            }
                          }),
              0);
    const auto wc = e.wait();
    ASSERT_TRUE(wc);
    EXPECT_EQ(wc->status, reads ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_LOC_LEN_ERR);
    EXPECT_EQ(ibv_destroy_ah(ah), 0);
  }
}

}  // namespace
}  // namespace cepheus::verbs
