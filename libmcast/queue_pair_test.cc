#include "libmcast/queue_pair.h"

#include <gtest/gtest.h>

namespace cepheus::mcast {
namespace {

TEST(WorkFailure, DistinguishesSendersFromReceiversAndNamesTheRemedy) {
  const std::string send = work_failure_text(IBV_WC_RETRY_EXC_ERR, false, false);
  EXPECT_EQ(send.find("send failed (transport retry counter exceeded): a member or the switch"), 0u)
      << send;
  const std::string receive = work_failure_text(IBV_WC_LOC_LEN_ERR, true, false);
  EXPECT_NE(receive.find("longer than the buffer posted"), std::string::npos) << receive;
  EXPECT_NE(receive.find("fresh groups"), std::string::npos);
}

// Its switch alone acknowledges a contribution.
TEST(WorkFailure, OfAReductionNamesNoOtherMember) {
  for (const ibv_wc_status status : {IBV_WC_RETRY_EXC_ERR, IBV_WC_RNR_RETRY_EXC_ERR,
                                     IBV_WC_REM_INV_REQ_ERR, IBV_WC_LOC_LEN_ERR}) {
    const std::string text = work_failure_text(status, false, true);
    EXPECT_EQ(text.find("a member"), std::string::npos) << text;
    EXPECT_NE(text.find("switch"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace cepheus::mcast
