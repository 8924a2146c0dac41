#include "libmcast/failure.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace cepheus::mcast {
namespace {

thread_local std::array<char, 512> last_text{};

}  // namespace

std::string errno_text(std::string_view what, int error) {
  std::array<char, 128> buffer{};
  // GNU strerror_r: the text may or may not be in the buffer.
  const char* text = strerror_r(error, buffer.data(), buffer.size());
  return std::string(what) + ": " + text;
}

const char* last_error() { return last_text.data(); }

mcast_status_t set_last_error(mcast_status_t status, std::string_view text) {
  const std::size_t length = std::min(text.size(), last_text.size() - 1);
  std::copy_n(text.begin(), length, last_text.begin());
  last_text[length] = '\0';
  return status;
}

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
