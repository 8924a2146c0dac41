#include "nic-emulator/engine/verbs_types.h"

namespace cepheus::rnic {

const char* to_string(QpState state) {
  switch (state) {
    case QpState::kReset:
      return "reset";
    case QpState::kInit:
      return "init";
    case QpState::kRtr:
      return "rtr";
    case QpState::kRts:
      return "rts";
    case QpState::kSqd:
      return "sqd";
    case QpState::kSqe:
      return "sqe";
    case QpState::kErr:
      return "err";
  }
  return "unknown";
}

const char* to_string(WcStatus status) {
  switch (status) {
    case WcStatus::kSuccess:
      return "success";
    case WcStatus::kLocalLength:
      return "local length error";
    case WcStatus::kLocalQpOperation:
      return "local qp operation error";
    case WcStatus::kLocalProtection:
      return "local protection error";
    case WcStatus::kFlush:
      return "work request flushed";
    case WcStatus::kRemoteInvalidRequest:
      return "remote invalid request";
    case WcStatus::kRemoteAccess:
      return "remote access error";
    case WcStatus::kRemoteOperation:
      return "remote operation error";
    case WcStatus::kRetryExceeded:
      return "transport retry counter exceeded";
    case WcStatus::kRnrRetryExceeded:
      return "rnr retry counter exceeded";
    case WcStatus::kBadResponse:
      return "bad response";
  }
  return "unknown";
}

}  // namespace cepheus::rnic
