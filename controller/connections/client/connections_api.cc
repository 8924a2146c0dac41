// The C API over Client: no exception crosses it. Texts, members and data of an event belong to the
// client until the next event. Events that programs don't know are skipped. The last error is a
// fixed text of each thread. Refused before anything is sent: a service's name out of form, no host
// or more than 16, more than 4096 bytes of data.
#include <cepheus/connections.h>

#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include "controller/connections/client/client.h"

namespace connections = cepheus::connections;
namespace wire = cepheus::wire;
using connections::Message;
using connections::MessageType;

struct cepheus_cmd_client {
  connections::Client client;
  Message event;  // the last one
  std::vector<cepheus_cmd_member_t> members;
};

namespace {

// An object without a destructor, because other objects of the thread may fail while it ends.
thread_local std::array<char, 1024> last_error{};

cepheus_cmd_status_t failed(cepheus_cmd_status_t status, std::string_view text) {
  last_error[text.copy(last_error.data(), last_error.size() - 1)] = '\0';
  return status;
}

cepheus_cmd_status_t status_of(const wire::Error& error) {
  switch (error.code) {
    case wire::ErrorCode::kInvalid:
      return CEPHEUS_CMD_ERR_INVALID;
    case wire::ErrorCode::kAgain:
      return CEPHEUS_CMD_ERR_AGAIN;
    case wire::ErrorCode::kUnavailable:
      return CEPHEUS_CMD_ERR_UNAVAILABLE;
    default:
      return CEPHEUS_CMD_ERR_GONE;
  }
}

cepheus_cmd_status_t failed(const wire::Error& error) {
  return failed(status_of(error), error.text);
}

template <typename Work>
cepheus_cmd_status_t guarded(Work&& work) try {
  return work();
} catch (const std::exception&) {  // memory alone: nothing else here throws
  return CEPHEUS_CMD_ERR_NO_MEMORY;
}

cepheus_cmd_status_t send(cepheus_cmd_client_h client, const Message& message) {
  const auto sent = client->client.send(message);
  return sent ? CEPHEUS_CMD_OK : failed(sent.error());
}

bool take_data(const void* data, std::size_t length, Message& into) {
  if (length > connections::kMostData || (data == nullptr && length > 0)) return false;
  const auto* bytes = static_cast<const std::uint8_t*>(data);
  if (length > 0) into.data.assign(bytes, bytes + length);
  return true;
}

constexpr std::pair<MessageType, cepheus_cmd_event_type_t> kEvents[] = {
    {MessageType::kListening, CEPHEUS_CMD_LISTENING},
    {MessageType::kNotListening, CEPHEUS_CMD_NOT_LISTENING},
    {MessageType::kConnecting, CEPHEUS_CMD_CONNECTING},
    {MessageType::kConnected, CEPHEUS_CMD_CONNECTED},
    {MessageType::kFailed, CEPHEUS_CMD_FAILED},
    {MessageType::kLeft, CEPHEUS_CMD_LEFT},
    {MessageType::kOffer, CEPHEUS_CMD_OFFER},
    {MessageType::kEstablished, CEPHEUS_CMD_ESTABLISHED},
    {MessageType::kCancel, CEPHEUS_CMD_CANCELLED},
    {MessageType::kClosed, CEPHEUS_CMD_CLOSED},
};

cepheus_cmd_event_type_t type_of(MessageType type) {
  for (const auto& [message, event] : kEvents) {
    if (message == type) return event;
  }
  return {};
}

template <std::size_t Size>
void put_host(wire::Ipv4 host, char (&to)[Size]) {
  static_assert(Size >= sizeof "255.255.255.255");
  std::memset(to, 0, Size);
  if (host.is_unset()) return;
  const std::string text = host.to_string();
  std::memcpy(to, text.data(), text.size());
}

void put_event(cepheus_cmd_client& client, cepheus_cmd_event_t& out) {
  const Message& m = client.event;
  out = {};
  out.type = type_of(m.type);
  out.request = m.request;
  out.connection = m.connection;
  out.virtual_qpn = m.virtual_qpn.value();
  put_host(m.host, out.host);
  out.service = m.service.c_str();
  out.reason = m.text.c_str();
  out.data = m.data.empty() ? nullptr : m.data.data();
  out.data_length = m.data.size();
  client.members.clear();
  for (const connections::Member& member : m.members) {
    cepheus_cmd_member_t& to = client.members.emplace_back();
    put_host(member.host, to.host);
    std::memcpy(to.name, member.name.data(), member.name.size());
    to.data = member.data.empty() ? nullptr : member.data.data();
    to.data_length = member.data.size();
  }
  out.members = client.members.empty() ? nullptr : client.members.data();
  out.member_count = client.members.size();
}

}  // namespace

static_assert(CEPHEUS_CMD_MAX_DATA == connections::kMostData);
static_assert(CEPHEUS_CMD_MAX_RECEIVERS == connections::kMostReceivers);
static_assert(CEPHEUS_CMD_NAME_SIZE == sizeof(connections::MemberName));

cepheus_cmd_status_t cepheus_cmd_open(const char* socket, cepheus_cmd_client_h* out) {
  if (out == nullptr) return failed(CEPHEUS_CMD_ERR_INVALID, "out is NULL: name where to put it");
  *out = nullptr;
  return guarded([&] {
    auto opened = connections::Client::open(
        socket == nullptr ? connections::Client::default_socket() : std::string(socket));
    if (!opened) return failed(opened.error());
    *out = new cepheus_cmd_client{std::move(*opened), {}, {}};
    return CEPHEUS_CMD_OK;
  });
}

void cepheus_cmd_destroy(cepheus_cmd_client_h client) { delete client; }

const char* cepheus_cmd_last_error(void) { return last_error.data(); }

int cepheus_cmd_fd(cepheus_cmd_client_h client) { return client->client.fd(); }

short cepheus_cmd_poll_events(cepheus_cmd_client_h client) { return client->client.events(); }

cepheus_cmd_status_t cepheus_cmd_next(cepheus_cmd_client_h client, cepheus_cmd_event_t* out) {
  return guarded([&] {
    while (true) {
      auto event = client->client.next();
      if (!event) return failed(event.error());
      if (!*event) return CEPHEUS_CMD_NO_EVENT;
      client->event = std::move(**event);
      put_event(*client, *out);
      if (out->type != 0) return CEPHEUS_CMD_OK;  // else nothing that programs know
    }
  });
}

cepheus_cmd_status_t cepheus_cmd_listen(cepheus_cmd_client_h client, const char* service) {
  return guarded([&] {
    Message message;
    message.type = MessageType::kListen;
    if (service != nullptr) message.service = service;
    if (!connections::is_service(message.service)) {
      return failed(CEPHEUS_CMD_ERR_INVALID,
                    "a service's name has 1 to 64 printable characters without blanks");
    }
    return send(client, message);
  });
}

cepheus_cmd_status_t cepheus_cmd_connect(cepheus_cmd_client_h client, uint32_t request,
                                         const char* service, const char* const* hosts,
                                         size_t host_count, const void* data, size_t data_length,
                                         uint32_t timeout_ms) {
  return guarded([&] {
    Message message;
    message.type = MessageType::kConnect;
    message.request = request;
    message.time_ms = timeout_ms;
    if (service != nullptr) message.service = service;
    if (!connections::is_service(message.service)) {
      return failed(CEPHEUS_CMD_ERR_INVALID,
                    "a service's name has 1 to 64 printable characters without blanks");
    }
    if (hosts == nullptr || host_count == 0 || host_count > connections::kMostReceivers) {
      return failed(CEPHEUS_CMD_ERR_INVALID,
                    "a connection has 1 to 16 receivers: name 1 to 16 hosts");
    }
    for (std::size_t i = 0; i < host_count; ++i) {
      const auto host = wire::Ipv4::parse(hosts[i] == nullptr ? "" : hosts[i]);
      if (!host) {
        return failed(CEPHEUS_CMD_ERR_INVALID, "hosts are named by their addresses: 10.0.0.2");
      }
      message.hosts.push_back(*host);
    }
    if (!take_data(data, data_length, message)) {
      return failed(CEPHEUS_CMD_ERR_INVALID, "data has at most 4096 bytes: send the rest later");
    }
    return send(client, message);
  });
}

cepheus_cmd_status_t cepheus_cmd_accept(cepheus_cmd_client_h client, uint64_t connection,
                                        const void* name, const void* data, size_t data_length) {
  return guarded([&] {
    Message message = connections::about(MessageType::kAccept, connection);
    if (name == nullptr || !take_data(data, data_length, message)) {
      return failed(CEPHEUS_CMD_ERR_INVALID,
                    "a receiver's answer is a name of 16 bytes, and at most 4096 bytes of data");
    }
    std::memcpy(message.name.data(), name, message.name.size());
    return send(client, message);
  });
}

cepheus_cmd_status_t cepheus_cmd_refuse(cepheus_cmd_client_h client, uint64_t connection,
                                        const char* reason) {
  return guarded([&] {
    return send(client, connections::about(MessageType::kRefuse, connection,
                                           reason == nullptr ? "" : reason));
  });
}

cepheus_cmd_status_t cepheus_cmd_close(cepheus_cmd_client_h client, uint64_t connection) {
  return guarded([&] { return send(client, connections::about(MessageType::kClose, connection)); });
}
