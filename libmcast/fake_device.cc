#include "libmcast/fake_device.h"

#include <arpa/inet.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cassert>

namespace cepheus::mcast::fake {
namespace {

std::unique_ptr<Device> the_one = std::make_unique<Device>();

}  // namespace

Device& Device::instance() { return *the_one; }
Device& Device::fresh() {
  the_one = std::make_unique<Device>();
  return *the_one;
}

std::uint32_t Device::packets_of(std::size_t length) const {
  const std::size_t packet = std::size_t{128} << mtu;
  return static_cast<std::uint32_t>(std::max<std::size_t>(1, (length + packet - 1) / packet));
}

void Device::complete(Pair& pair, const ibv_wc& wc) {
  const std::lock_guard lock(calls_mutex);
  completions_.emplace_back(pair.verbs.send_cq, wc);
  completions_.back().second.qp_num = pair.verbs.qp_num;
  if (std::erase(armed_, pair.verbs.send_cq) == 0) return;
  fired_.push_back(pair.verbs.send_cq);
  eventfd_write(pair.verbs.send_cq->channel->fd, 1);
}

void Device::complete_send(Pair& pair, ibv_wc_status status) {
  const std::lock_guard lock(calls_mutex);
  while (status == IBV_WC_SUCCESS && !pair.sends.front().is_signaled) pair.sends.pop_front();
  const std::uint32_t packets = packets_of(pair.sends.front().length);
  if (status == IBV_WC_SUCCESS) pair.send_psn = (pair.send_psn + packets) & wire::Psn::kMask;
  ibv_wc wc{};
  wc.wr_id = pair.sends.front().wr_id;
  wc.status = status;
  wc.opcode = IBV_WC_SEND;
  pair.sends.pop_front();
  complete(pair, wc);
}

void Device::deliver(Pair& pair, const std::string& data, std::uint32_t imm) {
  const std::lock_guard lock(calls_mutex);
  pair.receive_psn = (pair.receive_psn + packets_of(data.size())) & wire::Psn::kMask;
  assert(!pair.receives.empty() && "posted by the library, and not flushed");
  const Posted to = pair.receives.front();
  pair.receives.pop_front();
  std::copy_n(data.data(), std::min<std::size_t>(data.size(), to.length),
              static_cast<char*>(to.address));
  ibv_wc wc{};
  wc.wr_id = to.wr_id;
  wc.status = IBV_WC_SUCCESS;
  wc.opcode = IBV_WC_RECV;
  wc.byte_len = static_cast<std::uint32_t>(data.size());
  wc.wc_flags = IBV_WC_WITH_IMM;
  wc.imm_data = htonl(imm);
  complete(pair, wc);
}

// Flushes posted work, like a queue pair in ERR.
void Device::flush(Pair& pair) {
  while (!pair.sends.empty()) complete_send(pair, IBV_WC_WR_FLUSH_ERR);
  for (; !pair.receives.empty() && flushes_left != 0; pair.receives.pop_front()) {
    ibv_wc wc{};
    wc.wr_id = pair.receives.front().wr_id;
    wc.status = IBV_WC_WR_FLUSH_ERR;
    complete(pair, wc);
    if (flushes_left > 0) --flushes_left;
  }
}

void Device::raise(ibv_event_type type, std::uint8_t port) {
  ibv_async_event event{};
  event.event_type = type;
  event.element.port_num = port;
  events_.push_back(event);
}

void Device::raise(ibv_event_type type, Pair& pair) {
  ibv_async_event event{};
  event.event_type = type;
  event.element.qp = &pair.verbs;
  events_.push_back(event);
}

}  // namespace cepheus::mcast::fake
