// The bulk lane and its puts, through UCT's public API.
#include <barrier>
#include <thread>

#include "ucx-transport/transport_fixture.h"

namespace cepheus::uct {
namespace {

class Bulk : public RcMcast {
 protected:
  Bulk() { make("bulk", 1000); }
  ucs_status_t send(uct_tag_t tag, size_t length, uct_completion_t* comp, uct_mem_h mem = nullptr) {
    const uct_iov_t iov{buffer_, length, mem, 0, 1};
    return uct_ep_tag_eager_zcopy(ep_, tag, 0, &iov, 1, 0, comp);
  }
  ucs_status_t receive(uct_tag_t tag, uct_tag_t mask, Receive& ctx) {
    const uct_iov_t iov{buffer_, 100, nullptr, 0, 1};
    return uct_iface_tag_recv_zcopy(iface_, tag, mask, &iov, 1, &ctx);
  }
  // Once all members have the 6 bytes, and not before.
  void expect_completion(const Completion& comp) {
    EXPECT_EQ(comp.calls, 0);
    end(MCAST_OK, 6);
    EXPECT_EQ(comp.calls, 1);
    EXPECT_EQ(comp.status, UCS_OK);
  }
  char buffer_[2000] = "tagged";
};

TEST_F(Bulk, SendsTheLowHalfOfTheTagAndCompletesOnceAllHaveIt) {
  Completion comp;
  EXPECT_EQ(send(0xAAAA'0000'1234'5678, 6, &comp), UCS_INPROGRESS);
  EXPECT_EQ(lib.sent[0].imm, 0x12345678u);
  EXPECT_EQ(lib.sent[0].data, "tagged");
  expect_completion(comp);
}

TEST_F(Bulk, RefusesWhatItCanNotSend) {
  Completion comp;
  EXPECT_EQ(send(1, 1001, &comp), UCS_ERR_INVALID_PARAM);
  const uct_iov_t iov{buffer_, 8, nullptr, 0, 1};
  EXPECT_EQ(uct_ep_tag_eager_zcopy(ep_, 1, 7, &iov, 1, 0, &comp), UCS_ERR_UNSUPPORTED);
  lib.send = MCAST_ERR_AGAIN;
  EXPECT_EQ(send(1, 8, &comp), UCS_ERR_NO_RESOURCE);
  lib.recv = MCAST_ERR_AGAIN;
  Receive receive_ctx;
  EXPECT_EQ(receive(1, ~0ull, receive_ctx), UCS_ERR_EXCEEDS_LIMIT);
  EXPECT_EQ(uct_iface_tag_recv_cancel(iface_, &receive_ctx, 0), UCS_ERR_UNSUPPORTED);
}

TEST_F(Bulk, ReceivesUnderTheTagThatWasSent) {
  Receive ctx;
  ASSERT_EQ(receive(0xAAAA'0000'0000'0007, ~0ull, ctx), UCS_OK);
  end(MCAST_OK, 42, 7);
  EXPECT_EQ(ctx.result, UCS_OK);
  EXPECT_EQ(ctx.consumed, 1);
  EXPECT_EQ(ctx.length, 42u);
  EXPECT_EQ(ctx.sender_tag, 0xAAAA'0000'0000'0007u);
}

// Members that disagree on the order of their operations: no data is taken for another's.
TEST_F(Bulk, ReportsAnUnexpectedMessage) {
  Receive ctx, masked;
  ASSERT_EQ(receive(7, ~0ull, ctx), UCS_OK);
  end(MCAST_OK, 42, 8);
  EXPECT_EQ(ctx.result, UCS_ERR_NO_MESSAGE);
  EXPECT_EQ(ctx.consumed, 0);
  ASSERT_EQ(receive(7, 0xF0, masked), UCS_OK);
  end(MCAST_OK, 42, 8);
  EXPECT_EQ(masked.result, UCS_OK) << "the mask asks for no more";
}

TEST_F(Bulk, FailuresReachCompletionsAndAllThatComesLater) {
  Completion comp;
  ASSERT_EQ(send(1, 8, &comp), UCS_INPROGRESS);
  end(MCAST_ERR_FABRIC);
  EXPECT_EQ(comp.status, UCS_ERR_IO_ERROR);
  EXPECT_EQ(comp.calls, 1);
  EXPECT_EQ(uct_ep_check(ep_, 0, nullptr), UCS_ERR_IO_ERROR);
  lib.outstanding = 1;
  EXPECT_EQ(uct_ep_flush(ep_, 0, nullptr), UCS_ERR_IO_ERROR);
}

TEST_F(Bulk, FlushWaitsUntilAllHaveAcknowledged) {
  EXPECT_EQ(uct_iface_flush(iface_, 0, nullptr), UCS_OK);
  lib.outstanding = 2;
  Completion comp;
  EXPECT_EQ(uct_ep_flush(ep_, 0, &comp), UCS_INPROGRESS);
  uct_iface_progress(iface_);
  EXPECT_EQ(comp.calls, 0);
  lib.outstanding = 0;
  uct_iface_progress(iface_);
  EXPECT_EQ(comp.calls, 1);
  EXPECT_EQ(comp.status, UCS_OK);
}

TEST_F(Bulk, PostedWorkEndsWithItsEndpoint) {
  Receive receive_ctx;
  Completion comp;
  ASSERT_EQ(receive(1, ~0ull, receive_ctx), UCS_OK);
  ASSERT_EQ(send(1, 8, &comp), UCS_INPROGRESS);
  uct_ep_destroy(ep_);
  ep_ = nullptr;
  EXPECT_EQ(receive_ctx.result, UCS_ERR_CANCELED);
  EXPECT_EQ(comp.status, UCS_ERR_CANCELED);
  EXPECT_EQ(receive(1, ~0ull, receive_ctx), UCS_ERR_CANCELED);
}

// A flush that waits when the group breaks ends with its failure.
TEST_F(Bulk, FlushEndsWhenTheGroupBreaks) {
  lib.outstanding = 1;
  Completion comp, send_comp;
  ASSERT_EQ(send(1, 8, &send_comp), UCS_INPROGRESS);
  ASSERT_EQ(uct_ep_flush(ep_, 0, &comp), UCS_INPROGRESS);
  end(MCAST_ERR_FABRIC);
  uct_iface_progress(iface_);
  EXPECT_EQ(comp.calls, 1);
  EXPECT_EQ(comp.status, UCS_ERR_IO_ERROR);
}

TEST_F(Bulk, RegistersMemoryWithTheGroupsDeviceWhenItIsFirstUsed) {
  uct_mem_h mem = nullptr;
  ASSERT_EQ(uct_md_mem_reg(md_, buffer_, sizeof buffer_, UCT_MD_MEM_ACCESS_ALL, &mem), UCS_OK);
  EXPECT_EQ(lib.registered, 0);
  ASSERT_EQ(send(1, 8, nullptr, mem), UCS_INPROGRESS);
  ASSERT_EQ(send(2, 8, nullptr, mem), UCS_INPROGRESS);
  EXPECT_EQ(lib.registered, 1);
  EXPECT_THAT(lib.mems, ElementsAre(kMem, kMem));
  end(MCAST_OK);
  end(MCAST_OK);
  ASSERT_EQ(uct_md_mem_dereg(md_, mem), UCS_OK);
  EXPECT_EQ(lib.registered, 0);
}

// Their workers share the domain, and each has a context of its own.
TEST_F(Bulk, RegistersMemoryOnceIfTwoThreadsUseItFirst) {
  const uct_ep_h first = std::exchange(ep_, nullptr);
  const uct_iface_h of_first = std::exchange(iface_, nullptr);
  ASSERT_EQ(open({{"LANE", "bulk"}, {"REGISTER_TIMEOUT", "3s"}}), UCS_OK);
  ASSERT_EQ(connect(list({kMember.qpn, 18}), &ep_), UCS_OK);
  std::vector<uct_mem_h> memories(20);
  for (uct_mem_h& each : memories)
    ASSERT_EQ(uct_md_mem_reg(md_, buffer_, sizeof buffer_, UCT_MD_MEM_ACCESS_ALL, &each), UCS_OK);
  lib.send = MCAST_ERR_AGAIN;  // the memory has been registered by then
  std::barrier turns(2);
  const auto use = [&](uct_ep_h ep) {
    for (const uct_mem_h each : memories) {
      turns.arrive_and_wait();
      const uct_iov_t iov{buffer_, 8, each, 0, 1};
      EXPECT_EQ(uct_ep_tag_eager_zcopy(ep, 1, 0, &iov, 1, 0, nullptr), UCS_ERR_NO_RESOURCE);
    }
  };
  std::thread other(use, first);
  use(ep_);
  other.join();
  EXPECT_EQ(lib.registered, 20);
  for (const uct_mem_h each : memories) ASSERT_EQ(uct_md_mem_dereg(md_, each), UCS_OK);
  uct_ep_destroy(first);
  uct_iface_close(of_first);
}

class Put : public Bulk {
 protected:
  ucs_status_t put(size_t length, std::uint64_t offset, uct_rkey_t region, uct_completion_t* comp,
                   uct_mem_h mem = nullptr) {
    const uct_iov_t iov{buffer_, length, mem, 0, 1};
    return uct_ep_put_zcopy(ep_, &iov, 1, offset, region, comp);
  }
  ssize_t put_packed(std::string text, std::uint64_t offset, uct_rkey_t region) {
    const auto pack = [](void* dest, void* arg) -> size_t {
      const auto& from = *static_cast<std::string*>(arg);
      from.copy(static_cast<char*>(dest), from.size());
      return from.size();
    };
    return uct_ep_put_bcopy(ep_, pack, &text, offset, region);
  }
};

TEST_F(Put, IsABulkLanesOnly) {
  const auto cap = attr().cap;
  EXPECT_TRUE(cap.flags & UCT_IFACE_FLAG_PUT_ZCOPY);
  EXPECT_TRUE(cap.flags & UCT_IFACE_FLAG_PUT_BCOPY);
  EXPECT_FALSE(cap.flags & UCT_IFACE_FLAG_PUT_SHORT);
  EXPECT_EQ(cap.put.max_zcopy, 1000u);
  EXPECT_EQ(cap.put.max_bcopy, 1000u) << "no more than a message";
}

TEST_F(Put, WritesToARegionAndCompletesOnceAllHaveIt) {
  Completion comp;
  EXPECT_EQ(put(6, 1 << 20, 3, &comp), UCS_INPROGRESS);
  ASSERT_EQ(lib.written.size(), 1u);
  EXPECT_EQ(lib.written[0].data, "tagged");
  EXPECT_EQ(lib.written[0].region, 3);
  EXPECT_EQ(lib.written[0].offset, 1u << 20);
  EXPECT_FALSE(lib.written[0].notifies);
  expect_completion(comp);
}

TEST_F(Put, RefusesWhatNoWriteCanBe) {
  Completion comp;
  EXPECT_EQ(put(1001, 0, 1, &comp), UCS_ERR_INVALID_PARAM) << "longer than a message";
  EXPECT_EQ(put(8, 0, 1 << 16, &comp), UCS_ERR_INVALID_PARAM) << "no region's number";
  EXPECT_EQ(put_packed("x", 0, 1 << 16), UCS_ERR_INVALID_PARAM);
  EXPECT_EQ(put(0, 0, 1, &comp), UCS_OK) << "nothing to write";
  EXPECT_EQ(put_packed("", 0, 1), 0);
  lib.send = MCAST_ERR_AGAIN;
  EXPECT_EQ(put(8, 0, 1, &comp), UCS_ERR_NO_RESOURCE);
  EXPECT_EQ(comp.calls, 0);
  EXPECT_THAT(lib.written, IsEmpty());
}

// Every buffer comes back, after a put that succeeded or failed.
TEST_F(Put, PacksIntoBuffersOfItsOwn) {
  lib.send = MCAST_ERR_AGAIN;
  EXPECT_EQ(put_packed("refused", 0, 1), UCS_ERR_NO_RESOURCE);
  lib.send = MCAST_OK;
  int puts = 0;
  while (put_packed("put " + std::to_string(puts), 64 * puts, 2) > 0) ++puts;
  ASSERT_EQ(puts, 64);
  EXPECT_EQ(put_packed("x", 0, 1), UCS_ERR_NO_RESOURCE);
  EXPECT_EQ(lib.written[63].data, "put 63");
  EXPECT_EQ(lib.written[63].offset, 64u * 63);
  EXPECT_THAT(lib.mems, testing::Each(kMem));
  EXPECT_EQ(lib.registered, 1) << "all in one piece";
  end(MCAST_OK);
  EXPECT_EQ(put_packed("again", 0, 1), 5);
  while (!lib.ops.empty()) end(MCAST_OK);
  close();
  EXPECT_EQ(lib.registered, 0);
}

TEST_F(Put, GivesItsBuffersBackWhenTheGroupEnds) {
  ASSERT_GT(put_packed("first", 0, 2), 0);
  ASSERT_GT(put_packed("second", 64, 2), 0);
  EXPECT_EQ(lib.registered, 1);
  close();
  EXPECT_EQ(lib.registered, 0);
}

TEST_F(Put, ReportsTheReasonForMissingBuffers) {
  lib.registration = MCAST_ERR_NO_MEMORY;
  EXPECT_EQ(put_packed("x", 0, 1), UCS_ERR_NO_MEMORY);
  lib.registration = MCAST_OK;
  EXPECT_EQ(put_packed("x", 0, 1), 1);
  end(MCAST_ERR_FABRIC);
  EXPECT_EQ(uct_ep_check(ep_, 0, nullptr), UCS_ERR_IO_ERROR) << "nobody else hears of it";
}

TEST_F(Bulk, ReportsTheOutcomeOfTheGroupToUcx) {
  const struct {
    mcast_status_t ours;
    ucs_status_t theirs;
  } pairs[] = {{MCAST_OK, UCS_OK},
               {MCAST_INPROGRESS, UCS_INPROGRESS},
               {MCAST_ERR_NO_DEVICE, UCS_ERR_NO_DEVICE},
               {MCAST_ERR_NO_MEMORY, UCS_ERR_NO_MEMORY},
               {MCAST_ERR_REJECTED, UCS_ERR_REJECTED},
               {MCAST_ERR_ID_IN_USE, UCS_ERR_REJECTED},
               {MCAST_ERR_TIMED_OUT, UCS_ERR_TIMED_OUT},
               {MCAST_ERR_CANCELED, UCS_ERR_CANCELED},
               {MCAST_ERR_FABRIC, UCS_ERR_IO_ERROR}};
  for (const auto& pair : pairs) {
    lib.test = pair.ours;
    EXPECT_EQ(uct_ep_check(ep_, 0, nullptr), pair.theirs) << pair.ours;
  }
}

}  // namespace
}  // namespace cepheus::uct
