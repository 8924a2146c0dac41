// A page is made at most once in kFresh and shared by all requests meanwhile; requests wait for it
// under one lock. There are many workers, since each slow reader occupies one for its time limit.
// "/" names the page's path; anything else is not found.
#include "switch-emulator/tools/metrics_server.h"

#include <httplib.h>
#include <systemd/sd-daemon.h>

#include <chrono>
#include <iostream>
#include <mutex>

namespace cepheus::tools {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kFresh{1};
// A connection without a complete request, or that does not read its answer, occupies a worker for
// two seconds. Many of them must not block Prometheus for its ten.
constexpr HttpLimits kMetricsLimits{64, 32, 16};
constexpr char kContentType[] = "text/plain; version=0.0.4; charset=utf-8";

// One page for all requests within a second, so that readers do not load the fabric.
class SharedPage {
 public:
  explicit SharedPage(std::function<std::string()> make) : make_(std::move(make)) {}
  std::string get() {
    const std::lock_guard lock(mutex_);
    const auto now = steady_clock::now();
    if (text_.empty() || now - made_ >= kFresh) {
      text_ = make_();
      made_ = steady_clock::now();
    }
    return text_;
  }

 private:
  std::mutex mutex_;
  std::function<std::string()> make_;
  std::string text_;
  steady_clock::time_point made_;
};

}  // namespace

wire::Result<void> serve_metrics(const HttpAddress& address, std::function<std::string()> page) {
  SharedPage shared(std::move(page));
  const auto set_up = [&](httplib::Server& server) {
    server.Get("/metrics", [&](const httplib::Request&, httplib::Response& response) {
      response.set_content(shared.get(), kContentType);
    });
    server.Get("/", [](const httplib::Request&, httplib::Response& response) {
      response.set_content("cepheusctl metrics: GET /metrics\n", "text/plain");
    });
  };
  return serve_http(address, kMetricsLimits, set_up, [](const std::string& url) {
    std::cout << "metrics at " << url << "/metrics" << std::endl;
    sd_notify(0, "READY=1");
  });
}

}  // namespace cepheus::tools
