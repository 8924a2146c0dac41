// Both ends use the testbed's one memory at address 0, so contents mean nothing. A source posts at
// most kPostedMessages and keeps the rest in order; each completion posts the next one before the
// caller hears of it. A failed work request throws.
#include "fabric-sim/experiments/message_ends.h"

#include "fabric-sim/core/connection.h"

namespace cepheus::sim {

MessageSource::MessageSource(Testbed& testbed, Host& host)
    : host_(host),
      lkey_(open_memory(host, testbed.memory()).lkey),
      qpn_(create_qp(host, kPostedMessages, kPostedMessages)) {
  host.attach(qpn_, *this);
}

void MessageSource::send(std::uint32_t bytes) {
  if (posted_ < kPostedMessages) return post(bytes);
  waiting_.push_back(bytes);
}

void MessageSource::post(std::uint32_t bytes) {
  ++posted_;
  post_send(host_, qpn_, {0, bytes, lkey_}, {.signaled = true});
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
      receive_bytes_(static_cast<std::uint32_t>(testbed.memory().size())),
      lkey_(open_memory(host, testbed.memory()).lkey),
      qpn_(create_qp(host, kPostedMessages, kPostedMessages)) {
  host.attach(qpn_, *this);
}

void MessageSink::begin() {
  for (std::uint32_t i = 0; i < kPostedMessages; ++i) post();
}

void MessageSink::post() { post_receive(host_, qpn_, {0, receive_bytes_, lkey_}); }

void MessageSink::on_completion(Instant now, const rnic::Completion& completion) {
  require_success(completion);
  post();
  if (received_) received_(now);
}

Channel::Channel(Testbed& testbed, std::size_t from, std::size_t to)
    : source(testbed, testbed.network().host(from)), sink(testbed, testbed.network().host(to)) {
  connect(source.host(), source.qpn(), {sink.host().address(), sink.qpn(), kFirstPsn});
  connect(sink.host(), sink.qpn(), {source.host().address(), source.qpn(), kFirstPsn});
  sink.begin();
}

}  // namespace cepheus::sim
