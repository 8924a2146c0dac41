#include "fabric-sim/experiments/message_ends.h"

#include <stdexcept>

#include "fabric-sim/core/connection.h"

namespace cepheus::sim {
namespace {

std::uint32_t open_memory(Testbed& testbed, Host& host) {
  const auto memory = testbed.memory();
  return require(host.nic().register_memory(1, memory.data(), memory.size(), 0, rnic::kLocalWrite))
      .lkey;
}

void require_success(const rnic::Completion& completion) {
  if (completion.status == rnic::WcStatus::kSuccess) return;
  throw std::runtime_error("a simulated work request ended with " +
                           std::string(rnic::to_string(completion.status)));
}

}  // namespace

MessageSource::MessageSource(Testbed& testbed, Host& host)
    : host_(host),
      lkey_(open_memory(testbed, host)),
      qpn_(create_qp(host, kPostedMessages, kPostedMessages)) {
  host.attach(qpn_, *this);
}

void MessageSource::send(std::uint32_t bytes) {
  if (posted_ < kPostedMessages) return post(bytes);
  waiting_.push_back(bytes);
}

void MessageSource::post(std::uint32_t bytes) {
  ++posted_;
  const rnic::Sge sge{0, bytes, lkey_};
  rnic::SendWr wr;
  wr.signaled = true;
  if (bytes > 0) wr.sges = {&sge, 1};
  require(host_.post_send(qpn_, wr));
}

void MessageSource::on_completion(Instant now, const rnic::Completion& completion) {
  require_success(completion);
  --posted_;
  if (!waiting_.empty()) {
    post(waiting_.front());
    waiting_.pop_front();
  }
  if (acknowledged_) acknowledged_(now);
}

MessageSink::MessageSink(Testbed& testbed, Host& host)
    : host_(host),
      room_(static_cast<std::uint32_t>(testbed.memory().size())),
      lkey_(open_memory(testbed, host)),
      qpn_(create_qp(host, kPostedMessages, kPostedMessages)) {
  host.attach(qpn_, *this);
}

void MessageSink::begin() {
  for (std::uint32_t i = 0; i < kPostedMessages; ++i) post();
}

void MessageSink::post() {
  const rnic::Sge sge{0, room_, lkey_};
  rnic::RecvWr wr;
  wr.sges = {&sge, 1};
  require(host_.post_recv(qpn_, wr));
}

void MessageSink::on_completion(Instant now, const rnic::Completion& completion) {
  require_success(completion);
  post();
  if (received_) received_(now);
}

}  // namespace cepheus::sim
