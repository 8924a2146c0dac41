// What to do about a limit that a system call has met.
#pragma once

#include <cerrno>

namespace cepheus::wire {

// Follows the error's own text; empty for other errors.
inline const char* remedy(int error) {
  switch (error) {
    case EFBIG:
      return "; raise the limit of file sizes (ulimit -f)";
    case EMFILE:
      return "; raise the limit of open files (ulimit -n)";
    case ENOMEM:
      return "; free memory, or raise its limit (ulimit -v)";
    case ENOSPC:
      return "; make room there";
    case EDQUOT:
      return "; raise the quota there";
    default:
      return "";
  }
}

}  // namespace cepheus::wire
