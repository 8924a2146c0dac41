#include "fabric-sim/experiments/unicast_stream.h"

#include <stdexcept>

#include "fabric-sim/experiments/connection.h"

namespace cepheus::sim {
namespace {

constexpr wire::Psn kStart{0};
constexpr std::uint8_t kTimeoutCode = 1;  // the NIC's floor holds
// More bytes than a round trip over full queues carries.
constexpr std::uint32_t kPosted = 16;

}  // namespace

// Posts again what completes.
class UnicastStream::End final : public CompletionClient {
 public:
  End(Testbed& testbed, Host& host, std::uint32_t bytes, bool sends)
      : host_(host), bytes_(bytes), sends_(sends) {
    const auto memory = testbed.memory();
    lkey_ =
        require(host.nic().register_memory(1, memory.data(), memory.size(), 0, rnic::kLocalWrite))
            .lkey;
    qpn_ = create_qp(host, kPosted);
    host.attach(qpn_, *this);
  }

  rnic::Qpn qpn() const { return qpn_; }
  std::uint64_t messages() const { return messages_; }
  void bring_up(const End& peer) {
    connect(host_, qpn_, peer.host_.address(), peer.qpn_, kStart, kTimeoutCode);
  }
  void begin() {
    is_running_ = true;
    for (std::uint32_t i = 0; i < kPosted; ++i) post();
  }
  void end() { is_running_ = false; }

  void on_completion(Instant, const rnic::Completion& completion) override {
    if (completion.status != rnic::WcStatus::kSuccess) {
      throw std::runtime_error("a simulated work request ended with " +
                               std::string(rnic::to_string(completion.status)));
    }
    ++messages_;
    if (is_running_) post();
  }

 private:
  void post() {
    const rnic::Sge sge{0, bytes_, lkey_};
    if (sends_) {
      rnic::SendWr wr;
      wr.signaled = true;
      wr.sges = {&sge, 1};
      require(host_.post_send(qpn_, wr));
    } else {
      rnic::RecvWr wr;
      wr.sges = {&sge, 1};
      require(host_.post_recv(qpn_, wr));
    }
  }

  Host& host_;
  const std::uint32_t bytes_;
  const bool sends_;
  rnic::Qpn qpn_;
  std::uint32_t lkey_ = 0;
  bool is_running_ = false;
  std::uint64_t messages_ = 0;
};

UnicastStream::UnicastStream(Testbed& testbed, std::size_t from, std::size_t to,
                             std::uint32_t bytes)
    : source_(std::make_unique<End>(testbed, testbed.network().host(from), bytes, true)),
      sink_(std::make_unique<End>(testbed, testbed.network().host(to), bytes, false)) {
  source_->bring_up(*sink_);
  sink_->bring_up(*source_);
  sink_->begin();
}

UnicastStream::~UnicastStream() = default;

void UnicastStream::start() { source_->begin(); }
void UnicastStream::stop() { source_->end(); }
std::uint64_t UnicastStream::messages() const { return source_->messages(); }

}  // namespace cepheus::sim
