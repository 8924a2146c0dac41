#include "libmcast/queue_pair.h"

#include <gtest/gtest.h>

namespace cepheus::mcast {
namespace {

TEST(WorkFailure, DistinguishesSendersFromReceiversAndNamesTheRemedy) {
  const std::string send = work_failure_text(IBV_WC_RETRY_EXC_ERR, false);
  EXPECT_EQ(send.find("send failed (transport retry counter exceeded): a member or the switch"), 0u)
      << send;
  const std::string receive = work_failure_text(IBV_WC_LOC_LEN_ERR, true);
  EXPECT_NE(receive.find("longer than the buffer posted"), std::string::npos) << receive;
  EXPECT_NE(receive.find("fresh groups"), std::string::npos);
}

}  // namespace
}  // namespace cepheus::mcast
