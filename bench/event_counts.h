/* The load of waiting processes on the kernel: context switches, wake-ups, and system calls by
 * name. Counted by the kernel (perf_event_open) for all threads of a process.
 *
 *   struct event_counts counts = event_counts_open(pid);   0: this process, and threads to come
 *   event_counts_go(&counts, 1); ...; event_counts_go(&counts, 0);
 *   event_counts_read(&counts, values);                    kEvents of them, since it was opened
 *
 * Without root or tracefs only context switches can be counted; the others are NaN.
 */
#pragma once

#include <dirent.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A name with a slash is a tracepoint's. ioctl is how counting begins and ends. */
static const char* const kEventNames[] = {
    "switches",
    "sched/sched_waking",
    "raw_syscalls/sys_enter",
    "syscalls/sys_enter_ioctl",
    "syscalls/sys_enter_sched_yield",
    "syscalls/sys_enter_poll",
    "syscalls/sys_enter_ppoll",
    "syscalls/sys_enter_epoll_wait",
    "syscalls/sys_enter_epoll_pwait2",
    "syscalls/sys_enter_futex",
    "syscalls/sys_enter_read",
    "syscalls/sys_enter_write",
    "syscalls/sys_enter_readv",
    "syscalls/sys_enter_writev",
    "syscalls/sys_enter_clock_nanosleep",
    "syscalls/sys_enter_process_vm_readv",
};
enum { kEvents = sizeof kEventNames / sizeof kEventNames[0], kMostCounters = 64 * kEvents };
enum { kSwitches, kWakeUps, kCalls, kIoctls, kFirstName };

struct event_counts {
  int fds[kMostCounters]; /* kEvents of each thread; -1: can't be counted */
  int n;
};

static inline int event_open(const char* name, int tid) {
  struct perf_event_attr attr;
  memset(&attr, 0, sizeof attr);
  attr.size = sizeof attr;
  attr.disabled = 1;
  attr.inherit = 1;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_CONTEXT_SWITCHES;
  if (strchr(name, '/') != NULL) {
    char path[128];
    int id = 0;
    snprintf(path, sizeof path, "/sys/kernel/tracing/events/%s/id", name);
    FILE* file = fopen(path, "r");
    if (file == NULL) return -1;
    const int found = fscanf(file, "%d", &id);
    fclose(file);
    if (found != 1) return -1;
    attr.type = PERF_TYPE_TRACEPOINT;
    attr.config = (uint64_t)id;
  }
  return (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static inline void event_counts_add(struct event_counts* counts, int tid) {
  if (counts->n + kEvents > kMostCounters) return;
  for (int i = 0; i < kEvents; i++) counts->fds[counts->n++] = event_open(kEventNames[i], tid);
}

static inline struct event_counts event_counts_open(int pid) {
  struct event_counts counts = {{0}, 0};
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/task", pid != 0 ? pid : (int)getpid());
  DIR* tasks = opendir(path);
  for (struct dirent* task; tasks != NULL && (task = readdir(tasks)) != NULL;) {
    if (task->d_name[0] != '.') event_counts_add(&counts, atoi(task->d_name));
  }
  if (tasks != NULL) closedir(tasks);
  return counts;
}

static inline void event_counts_go(const struct event_counts* counts, int on) {
  for (int i = 0; i < counts->n; i++) {
    if (counts->fds[i] >= 0)
      ioctl(counts->fds[i], on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
  }
}

/* Without the ioctls that begin and end counting. */
static inline void event_counts_read(const struct event_counts* counts, double* values) {
  for (int i = 0; i < kEvents; i++) values[i] = counts->n > 0 ? 0 : NAN;
  for (int i = 0; i < counts->n; i++) {
    uint64_t value = 0;
    const int is_there =
        counts->fds[i] >= 0 && read(counts->fds[i], &value, sizeof value) == (ssize_t)sizeof value;
    values[i % kEvents] += is_there ? (double)value : NAN;
  }
  values[kCalls] -= values[kIoctls];
  values[kIoctls] = 0;
}
