// Waits for an epoll descriptor by the nanosecond, with or without the kernel's epoll_pwait2().
//
// Kernels before Linux 5.11 lack that call, and seccomp profiles of older containers refuse it.
#pragma once

#include <sys/epoll.h>

#include <span>

#include "wire/types.h"

namespace cepheus::fabric {

// The number of events; 0: none in time, or a signal arrived. A negative time waits for ever.
// -1: the kernel can't wait, and errno has the reason. A caller must not take that for silence.
int wait_for_events(int epoll, std::span<epoll_event> events, wire::Duration most);

}  // namespace cepheus::fabric
