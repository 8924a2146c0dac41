#include "nic-emulator/engine/verbs_types.h"

#include <array>

namespace cepheus::rnic {

constexpr std::array kStateNames{"reset", "init", "rtr", "rts", "sqd", "sqe", "err"};
static_assert(kStateNames.size() == static_cast<std::size_t>(QpState::kErr) + 1);

constexpr std::array kStatusNames{"success",
                                  "local length error",
                                  "local qp operation error",
                                  "local protection error",
                                  "work request flushed",
                                  "remote invalid request",
                                  "remote access error",
                                  "remote operation error",
                                  "transport retry counter exceeded",
                                  "rnr retry counter exceeded",
                                  "bad response",
                                  "local access error"};
static_assert(kStatusNames.size() == static_cast<std::size_t>(WcStatus::kLocalAccess) + 1);

const char* to_string(QpState state) { return kStateNames[static_cast<std::size_t>(state)]; }

const char* to_string(WcStatus status) { return kStatusNames[static_cast<std::size_t>(status)]; }

}  // namespace cepheus::rnic
