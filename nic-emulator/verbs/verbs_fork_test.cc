// fork() in a program that uses verbs: its children, and its own connections afterwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <thread>

#include "nic-emulator/verbs/test_endpoint.h"

namespace cepheus::verbs {
namespace {

// An alarm ends a program that waits for itself. Each fork starts it anew, so that the number of
// forks does not count.
constexpr unsigned kMostSeconds = 60;

using Fork = TwoHosts;

TEST_F(Fork, AForkedChildHasNoDeviceAndLeavesTheParentsAlone) {
  Endpoint e;
  const pid_t child = ::fork();
  if (child == 0) {
    ibv_wc wc{};
    bool dead = ibv_poll_cq(e.cq, 1, &wc) < 0 && errno == ENODEV;
    dead = dead && e.post_send(1, 0, 1) == ENODEV && e.post_recv(1, 0, 1) == ENODEV;
    dead = dead && ibv_alloc_pd(e.context) == nullptr && errno == ENODEV;
    ibv_port_attr port{};
    dead = dead && ibv_query_port(e.context, 1, &port) == ENODEV;
    // Cleaning up must work, and must not change the parent's objects.
    dead = dead && ibv_destroy_qp(e.qp) == 0 && ibv_destroy_cq(e.cq) == 0;
    be_host("h1");
    ibv_context* own = open_device();
    ibv_gid gid{};
    dead = dead && ibv_query_gid(own, 1, 0, &gid) == 0 && gid.raw[15] == 2;
    ::_exit(dead ? 0 : 1);
  }
  EXPECT_TRUE(ended_well(child));
  ibv_port_attr port{};
  ASSERT_EQ(ibv_query_port(e.context, 1, &port), 0);
  EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
}

TEST_F(Fork, AChildCleansUpAnyLocksOfOtherThreadsAtTheFork) {
  Endpoint e({.cqe = 1024, .with_channel = true, .recv_wr = 1024});
  ASSERT_EQ(e.modify_to_error(), 0);
  std::atomic<bool> stop{false};
  std::thread polling([&] {
    std::array<ibv_wc, 256> wcs;
    while (!stop.load()) {
      // Completed at once, in ERR.
      for (int i = 0; i < 256; ++i) EXPECT_EQ(e.post_recv(1, 0, 8), 0);
      while (ibv_poll_cq(e.cq, 256, wcs.data()) > 0) ibv_req_notify_cq(e.cq, 0);
    }
  });
  for (int i = 0; i < 300 && !HasFailure(); ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(kMostSeconds);  // ends a child that waits for a lock
      ibv_wc wc{};
      while (ibv_poll_cq(e.cq, 1, &wc) > 0) {
      }
      const bool destroyed = ibv_destroy_qp(e.qp) == 0 && ibv_destroy_cq(e.cq) == 0;
      ::_exit(destroyed ? 0 : 1);
    }
    EXPECT_TRUE(ended_well(child)) << "fork " << i;
  }
  stop = true;
  polling.join();
}

// A child's cleaning up must not take the parent's events: a descriptor is one object to both.
TEST_F(Fork, AChildsCleaningUpLeavesTheParentsEventsWaiting) {
  Endpoint e({.with_channel = true});
  ASSERT_EQ(ibv_req_notify_cq(e.cq, 0), 0);
  ASSERT_EQ(e.modify_to_error(), 0);
  ASSERT_EQ(e.post_recv(1, 0, 8), 0);
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  ASSERT_EQ(ibv_get_cq_event(e.channel, &cq, &context), 0);  // acknowledged by the parent, later
  ASSERT_EQ(ibv_req_notify_cq(e.cq, 0), 0);
  ASSERT_EQ(e.post_recv(2, 0, 8), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(kMostSeconds);
    ::_exit(ibv_destroy_qp(e.qp) == 0 && ibv_destroy_cq(e.cq) == 0 ? 0 : 1);
  }
  EXPECT_TRUE(ended_well(child));
  pollfd want{e.channel->fd, POLLIN, 0};
  ASSERT_EQ(::poll(&want, 1, 0), 1);
  ASSERT_EQ(ibv_get_cq_event(e.channel, &cq, &context), 0);
  ibv_ack_cq_events(cq, 2);
}

constexpr int kForks = 1000;
std::atomic<int> forks{0};
std::atomic<int> failed_child{0};  // its wait status
volatile bool is_child = false;
std::atomic<bool> has_begun{false};  // to use verbs, all threads started

// Handlers of SIGSEGV start debuggers so. Every child continues behind the handler.
void fork_in_handler(int) {
  const pid_t child = ::fork();
  ::alarm(kMostSeconds);
  if (child == 0) {
    is_child = true;
    return;
  }
  int status = 0;  // as it is if the machine has no process left
  if (child > 0 && ::waitpid(child, &status, 0) != child) status = -1;
  if (status != 0) failed_child = status;
  ++forks;
}

// The threads beside the program: only the polling thread handles signals.
void block_signals() {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

// At any place of the program: each time some other number of steps after the last fork.
void interrupt(pthread_t program) {
  block_signals();
  while (!has_begun) ::sched_yield();
  for (int i = 0; i < kForks; ++i) {
    for (volatile int steps = i * 37 % 400 * 500; steps > 0;) steps = steps - 1;
    ::pthread_kill(program, SIGPROF);
    while (forks == i) ::sched_yield();
  }
}

void fork_without_end() {
  block_signals();
  for (;;) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    if (child > 0) ::waitpid(child, nullptr, 0);
  }
}

class ForkingHandler : public Fork, public ::testing::WithParamInterface<bool> {};

INSTANTIATE_TEST_SUITE_P(AloneAndBesideAThreadThatForks, ForkingHandler, ::testing::Bool());

TEST_P(ForkingHandler, MayInterruptAnyCall) {
  // In a process of its own, which an alarm ends if it waits for itself.
  const pid_t program = ::fork();
  if (program == 0) {
    ::alarm(kMostSeconds);
    Endpoint e;
    e.connect(e.name());
    ibv_wc wc{};
    int polled = 0;
    const auto turn = [&] {
      static_cast<void>(e.post_recv(1, 0, 8));
      static_cast<void>(e.post_send(2, 0, 8));
      while ((polled = ibv_poll_cq(e.cq, 1, &wc)) > 0) {
      }
    };
    // glibc's fork() would wait for malloc() that it interrupts, so all memory is allocated before.
    for (int i = 0; i < kForks; ++i) turn();
    struct sigaction action {};
    action.sa_handler = fork_in_handler;
    ::sigaction(SIGPROF, &action, nullptr);
    if (GetParam()) std::thread(fork_without_end).detach();
    std::thread(interrupt, ::pthread_self()).detach();
    has_begun = true;
    while ((is_child || forks < kForks) && polled >= 0 && failed_child == 0) {
      turn();
      if (is_child) {
        // Completions from before the fork come first.
        while ((polled = ibv_poll_cq(e.cq, 1, &wc)) > 0) {
        }
        ::_exit(polled < 0 && errno == ENODEV ? 0 : 1);
      }
    }
    if (failed_child != 0) {
      ::dprintf(STDERR_FILENO, "child %d ended with wait status %#x\n", forks.load(),
                static_cast<unsigned>(failed_child.load()));
    }
    ibv_port_attr port{};
    const bool is_up = ibv_query_port(e.context, 1, &port) == 0 && port.state == IBV_PORT_ACTIVE;
    ::_exit(is_up && failed_child == 0 && polled >= 0 ? 0 : 1);
  }
  EXPECT_TRUE(ended_well(program));
}

}  // namespace
}  // namespace cepheus::verbs
