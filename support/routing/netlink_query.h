// One request to the kernel about routes, neighbours and interfaces, and its answer (rtnetlink(7)).
//
// No capability is needed, and no call waits: the kernel answers before send() returns.
#pragma once

#include <arpa/inet.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "wire/types.h"

namespace cepheus::routing {

class NetlinkQuery {
 public:
  template <typename Body>
  NetlinkQuery(std::uint16_t type, const Body& body) {
    header_.nlmsg_type = type;
    header_.nlmsg_flags = NLM_F_REQUEST;
    append(&body, sizeof body);
  }
  void add(std::uint16_t attribute, const void* value, std::size_t bytes) {
    const rtattr head{static_cast<unsigned short>(RTA_LENGTH(bytes)), attribute};
    append(&head, sizeof head);
    append(value, bytes);
  }
  void add(std::uint16_t attribute, wire::Ipv4 address) {
    const std::uint32_t value = htonl(address.value());
    add(attribute, &value, sizeof value);
  }

  // By a socket of NETLINK_ROUTE. 0, or the kernel's error.
  int send_request(int fd) {
    header_.nlmsg_len = static_cast<std::uint32_t>(NLMSG_HDRLEN + length_);
    std::memcpy(bytes_.data(), &header_, sizeof header_);
    if (send(fd, bytes_.data(), header_.nlmsg_len, 0) < 0) return errno;
    const ssize_t got = recv(fd, bytes_.data(), bytes_.size(), MSG_DONTWAIT);
    if (got < ssize_t{NLMSG_HDRLEN}) return got < 0 ? errno : EPROTO;
    std::memcpy(&header_, bytes_.data(), sizeof header_);
    length_ = static_cast<std::size_t>(got) - NLMSG_HDRLEN;
    if (header_.nlmsg_type != NLMSG_ERROR) return 0;
    return -read_body<nlmsgerr>().error;
  }

  template <typename Body>
  Body read_body() const {
    Body body{};
    std::memcpy(&body, bytes_.data() + NLMSG_HDRLEN, std::min(sizeof body, length_));
    return body;
  }
  // An attribute's value, in an answer with a body of this size. False if it has none.
  template <typename Body, typename Value>
  bool read(std::uint16_t attribute, Value& value) const {
    std::size_t at = NLMSG_ALIGN(sizeof(Body));
    while (at + sizeof(rtattr) <= length_) {
      rtattr head{};
      std::memcpy(&head, bytes_.data() + NLMSG_HDRLEN + at, sizeof head);
      if (head.rta_len < sizeof head || at + head.rta_len > length_) return false;
      if ((head.rta_type & NLA_TYPE_MASK) == attribute &&
          head.rta_len == RTA_LENGTH(sizeof value)) {
        std::memcpy(&value, bytes_.data() + NLMSG_HDRLEN + at + RTA_LENGTH(0), sizeof value);
        return true;
      }
      at += RTA_ALIGN(head.rta_len);
    }
    return false;
  }

 private:
  void append(const void* data, std::size_t bytes) {
    std::memcpy(bytes_.data() + NLMSG_HDRLEN + length_, data, bytes);
    length_ = NLMSG_ALIGN(length_ + bytes);
  }

  nlmsghdr header_{};
  std::size_t length_ = 0;  // behind the header
  alignas(nlmsghdr) std::array<std::uint8_t, 4096> bytes_{};
};

}  // namespace cepheus::routing
