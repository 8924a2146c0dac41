// The emulated NIC's replacement for a kernel interface: UDP datagrams, unreliable datagrams of RoCE,
// and its counters (nic-emulator/verbs/datagram.h). Its functions are looked up at run time:
// the program is linked to plain libibverbs.
#pragma once

#include <arpa/inet.h>
#include <dlfcn.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

struct cepheus_datagram_socket;

namespace cepheus::fabric_test {

using Payload = std::vector<std::uint8_t>;

inline Payload from_hex(const std::string& text) {
  if (text.size() % 2 != 0) throw std::invalid_argument("hex digits come in pairs");
  Payload bytes;
  for (std::size_t at = 0; at + 1 < text.size(); at += 2) {
    bytes.push_back(static_cast<std::uint8_t>(std::stoul(text.substr(at, 2), nullptr, 16)));
  }
  return bytes;
}

inline std::string to_hex(const std::uint8_t* bytes, std::size_t size) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (std::size_t at = 0; at < size; ++at) {
    text += kDigits[bytes[at] >> 4];
    text += kDigits[bytes[at] & 15];
  }
  return text;
}

class EmulatedNic {
 public:
  struct Datagram {
    std::size_t socket = 0;  // its number
    in_addr from{};
    std::uint16_t port = 0;
    std::string hex;
  };

  // 0 or an errno: EOPNOTSUPP if the device is another.
  int open_socket(ibv_context* context, std::uint8_t tos) {
    using Open = int (*)(ibv_context*, std::uint16_t, std::uint16_t, std::uint8_t,
                         cepheus_datagram_socket**);
    const auto open = find<Open>("cepheus_datagram_open");
    cepheus_datagram_socket* made = nullptr;
    if (const int error = open == nullptr ? EOPNOTSUPP : open(context, 0, 0, tos, &made);
        error != 0) {
      return error;
    }
    sockets_.push_back(made);
    return 0;
  }
  std::size_t newest() const { return sockets_.size() - 1; }
  std::uint16_t port_of_newest() const {
    using Port = std::uint16_t (*)(const cepheus_datagram_socket*);
    return find<Port>("cepheus_datagram_port")(sockets_.back());
  }

  // 0 or an errno. Waits a moment for space.
  int send(std::size_t number, in_addr to, std::uint16_t port, const Payload& payload) {
    using Send =
        int (*)(cepheus_datagram_socket*, std::uint32_t, std::uint16_t, const void*, std::size_t);
    if (number >= sockets_.size()) return EBADF;
    const auto send = find<Send>("cepheus_datagram_send");
    int error = EAGAIN;
    for (int tries = 0; error == EAGAIN && tries < kTries; ++tries) {
      error = send(sockets_[number], ntohl(to.s_addr), port, payload.data(), payload.size());
      if (error == EAGAIN) std::this_thread::yield();
    }
    return error;
  }

  // The next one at any socket, if one comes within the time.
  std::optional<Datagram> receive(std::chrono::milliseconds limit) {
    const auto give_up = std::chrono::steady_clock::now() + limit;
    do {
      for (std::size_t number = 0; number < sockets_.size(); ++number) {
        if (auto found = receive_at(number)) return found;
      }
      std::this_thread::yield();
    } while (std::chrono::steady_clock::now() < give_up);
    return std::nullopt;
  }

  // "name value" of each counter, with blanks between them; empty for other devices.
  std::string counters() const {
    using Counters = std::size_t (*)(char*, std::size_t);
    const auto counters = find<Counters>("cepheus_roce_counters");
    if (counters == nullptr) return {};
    std::string text(1 << 14, '\0');
    text.resize(std::min(counters(text.data(), text.size()), text.size() - 1));
    for (char& c : text) c = c == '\n' ? ' ' : c;
    return text;
  }

 private:
  static constexpr int kTries = 1'000'000;

  template <typename Function>
  static Function find(const char* name) {
    return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
  }
  std::optional<Datagram> receive_at(std::size_t number) {
    using Receive =
        ssize_t (*)(cepheus_datagram_socket*, void*, std::size_t, std::uint32_t*, std::uint16_t*);
    std::uint8_t bytes[2048];
    std::uint32_t from = 0;
    Datagram found;
    found.socket = number;
    const ssize_t size = find<Receive>("cepheus_datagram_recv")(sockets_[number], bytes,
                                                                sizeof bytes, &from, &found.port);
    if (size < 0) return std::nullopt;
    found.from.s_addr = htonl(from);
    found.hex = to_hex(bytes, static_cast<std::size_t>(size));
    return found;
  }

  std::vector<cepheus_datagram_socket*> sockets_;  // until the program ends
};

}  // namespace cepheus::fabric_test
