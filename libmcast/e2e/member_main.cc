// One member process of the end-to-end tests: its commands come over a socket (JSON, one datagram
// each way).
#include <poll.h>
#include <sys/socket.h>

#include <vector>

#include "libmcast/e2e/member.h"

// The socket is descriptor 3.
int main() {
  constexpr int kSocket = 3;
  constexpr int kIdleMs = 1;  // how long progress may wait for a command
  cepheus::mcast::e2e::Member member;
  std::vector<char> buffer(1 << 16);
  for (;;) {
    member.progress();
    pollfd fd{kSocket, POLLIN, 0};
    if (poll(&fd, 1, kIdleMs) <= 0) continue;
    const ssize_t n = recv(kSocket, buffer.data(), buffer.size(), 0);
    if (n <= 0) return 0;  // the test has ended
    nlohmann::json reply;
    try {
      reply = member.run(nlohmann::json::parse(buffer.data(), buffer.data() + n));
    } catch (const nlohmann::json::exception& e) {
      reply = {{"status", MCAST_ERR_INVALID}, {"text", e.what()}};
    }
    const std::string text = reply.dump();
    if (send(kSocket, text.data(), text.size(), MSG_NOSIGNAL) < 0) return 0;
  }
}
