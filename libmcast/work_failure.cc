#include "libmcast/work_failure.h"

namespace cepheus::mcast {
namespace {

const char* meaning(ibv_wc_status status, bool is_receive) {
  switch (status) {
    case IBV_WC_RETRY_EXC_ERR:
      return "a member or the switch stopped acknowledging, cepheusctl groups shows the lagging "
             "members";
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return "a member posted no receive";
    case IBV_WC_LOC_LEN_ERR:
      return is_receive ? "the message was longer than the buffer posted for it"
                        : "the message was longer than the device sends";
    case IBV_WC_REM_INV_REQ_ERR:
      return "a member's buffer was shorter than the message, or the members' path MTUs differ";
    case IBV_WC_REM_ACCESS_ERR:
      return "a member has published no region that holds the WRITE, or has taken its memory back: "
             "the leader's reason and cepheusctl groups name it";
    case IBV_WC_REM_OP_ERR:
      return "a member could not take the message, its own group's reason names the cause";
    case IBV_WC_LOC_PROT_ERR:
      return "the memory passed is not registered or was freed";
    case IBV_WC_WR_FLUSH_ERR:
      return "the queue pair failed or its fabric has ended";
    default:
      return "the device or the fabric failed";
  }
}

}  // namespace

std::string work_failure_text(ibv_wc_status status, bool is_receive) {
  return std::string(is_receive ? "receive" : "send") + " failed (" + ibv_wc_status_str(status) +
         "): " + meaning(status, is_receive) + "; set up again with fresh groups";
}

}  // namespace cepheus::mcast
