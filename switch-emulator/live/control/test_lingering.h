// For tests: a TCP connection over loopback that lingers at its close: its peer does not read.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <vector>

#include "switch-emulator/ports/unique_fd.h"

namespace cepheus::live {

struct Lingering {
  fabric::UniqueFd listener, mine, peer;  // after the peer's end, close has nothing to wait for

  Lingering() {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener.reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener.get(), 1), 0);
    getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size);
    mine.reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(mine.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    peer.reset(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const std::vector<char> data(1 << 16);
    while (send(mine.get(), data.data(), data.size(), MSG_DONTWAIT) > 0) continue;
    const linger for_long{1, 60};
    setsockopt(mine.get(), SOL_SOCKET, SO_LINGER, &for_long, sizeof for_long);
  }
};

}  // namespace cepheus::live
