// FabricWatcher has one thread, which requests a view every kBetweenViews while there are readers.
// Readers of events wait for the next view and share its text. kMostReaders of them may be
// connected; further ones are refused with 503.
//
// Every answer has headers that forbid foreign resources and frames. Errors: 403 without
// permission, 400 for a wrong body, 409 if the fabric refuses. The fabric itself kills a process,
// as this one may have more rights.
#include "switch-emulator/tools/web_server.h"

#include <httplib.h>
#include <sys/random.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <iostream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "switch-emulator/live/status/control_protocol.h"
#include "switch-emulator/live/status/printable.h"
#include "switch-emulator/tools/endings.h"
#include "switch-emulator/tools/view_source.h"
#include "switch-emulator/tools/web_files.h"
#include "switch-emulator/tools/web_request.h"

namespace cepheus::tools {
namespace {

using httplib::Request;
using httplib::Response;
using nlohmann::json;

// A reader of events occupies a worker, and a peer that stops sending occupies one for the time
// limit of two seconds. Many of these leave some workers for the page itself. Peers that have sent
// nothing yet wait in the kernel.
constexpr int kMostReaders = 16, kMostSilent = 224;
constexpr HttpLimits kWebLimits{kMostReaders + kMostSilent + 16, 32, 64};
constexpr std::chrono::milliseconds kBetweenViews{500};
constexpr char kText[] = "text/plain; charset=utf-8";
constexpr int kConflict = 409, kUnavailable = 503;

// 128 bits as text; empty if the kernel gives none.
std::string draw_token() {
  std::array<unsigned char, 16> bits;
  if (::getrandom(bits.data(), bits.size(), 0) != static_cast<ssize_t>(bits.size())) return "";
  std::string text;
  for (const unsigned char byte : bits) {
    for (const int digit : {byte >> 4, byte & 15}) text += "0123456789abcdef"[digit];
  }
  return text;
}

// The views of a fabric for several waiting readers: the fabric gets two requests a second while
// there are readers, however many.
class FabricWatcher {
 public:
  // `control`: value of "control" in the views.
  FabricWatcher(std::string fabric_socket, bool control)
      : control_(control), source_(std::move(fabric_socket)), thread_([this] { run(); }) {}
  ~FabricWatcher() {
    end();
    thread_.join();
  }

  struct View {
    std::string json;  // of fabric_view(), with "control"; or {"error"}
    std::uint64_t number = 0;
  };
  // The first view after number `seen`; 0: the next one. Empty: it has ended.
  std::optional<View> next(std::uint64_t seen) {
    std::unique_lock lock(mutex_);
    if (seen == 0) seen = view_.number;
    ++readers_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return view_.number > seen || ended_; });
    --readers_;
    return ended_ ? std::nullopt : std::optional(view_);
  }
  void end() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return readers_ > 0 || ended_; });
      if (ended_) return;
      lock.unlock();
      std::string text = look();
      lock.lock();
      view_ = {std::move(text), view_.number + 1};
      changed_.notify_all();
      changed_.wait_for(lock, kBetweenViews, [this] { return ended_; });
    }
  }
  std::string look() {
    auto view = source_.look();
    if (!view) return live::json_text({{"error", view.error().text}}, -1);
    (*view)["control"] = control_;
    return live::json_text(*view, -1);
  }

  const bool control_;
  ViewSource source_;  // used by run() only
  std::mutex mutex_;
  std::condition_variable changed_;
  View view_;
  int readers_ = 0;
  bool ended_ = false;
  std::thread thread_;
};

class Site {
 public:
  Site(const WebOptions& options, std::string token)
      : fabric_socket_(options.fabric_socket),
        requests_(options.listen, options.control, std::move(token)),
        watcher_(options.fabric_socket, options.control) {}

  void set_up(httplib::Server& server) {
    server.set_pre_routing_handler([this](const Request& request, Response& response) {
      protect(response);
      return refuse(response, requests_.refuse(request))
                 ? httplib::Server::HandlerResponse::Handled
                 : httplib::Server::HandlerResponse::Unhandled;
    });
    const auto page = [&server](const char* path, const char* text, const char* type) {
      server.Get(path, [text, type](const Request&, Response& r) { r.set_content(text, type); });
    };
    page("/", kPageHtml, "text/html; charset=utf-8");
    page("/page.css", kPageCss, "text/css; charset=utf-8");
    page("/page.js", kPageJs, "text/javascript; charset=utf-8");
    server.Get("/view.json", [this](const Request& request, Response& response) {
      if (refuse(response, requests_.refuse_reading(request))) return;
      const auto view = watcher_.next(0);
      response.set_content(view ? view->json : "{}", "application/json");
    });
    server.Get("/events", [this](const Request& request, Response& response) {
      if (!refuse(response, requests_.refuse_reading(request))) stream(response);
    });
    server.Post("/link", [this](const Request& request, Response& response) {
      carry_out(requests_.link_request(request), response);
    });
    server.Post("/kill", [this](const Request& request, Response& response) {
      carry_out(requests_.kill_request(request), response);
    });
  }
  void end() { watcher_.end(); }

 private:
  static void refuse(Response& response, int status, const std::string& why) {
    response.status = status;
    response.set_content(live::printable(why) + "\n", kText);
  }
  // True: it is refused.
  static bool refuse(Response& response, const std::optional<HttpRefusal>& refusal) {
    if (refusal) refuse(response, refusal->status, refusal->why);
    return refusal.has_value();
  }

  // No foreign resources, no frames, no referrer to other pages.
  static void protect(Response& response) {
    response.set_header("Content-Security-Policy",
                        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src "
                        "'self'; img-src data:; base-uri 'none'; form-action 'none'; "
                        "frame-ancestors 'none'");
    response.set_header("X-Content-Type-Options", "nosniff");
    response.set_header("Referrer-Policy", "no-referrer");
    response.set_header("Cache-Control", "no-store");
  }

  void stream(Response& response) {
    if (readers_.fetch_add(1) >= kMostReaders) {
      readers_.fetch_sub(1);
      return refuse(
          response, kUnavailable,
          std::to_string(kMostReaders) + " other readers are connected: close one of them");
    }
    response.set_chunked_content_provider(
        "text/event-stream",
        [this, seen = std::uint64_t{0}](std::size_t, httplib::DataSink& sink) mutable {
          const auto view = watcher_.next(seen);
          if (!view) return false;
          seen = view->number;
          const std::string event = "data: " + view->json + "\n\n";
          return sink.write(event.data(), event.size());
        },
        [this](bool) { readers_.fetch_sub(1); });
  }

  // The fabric kills its client itself, because this process may have rights that the fabric has
  // not.
  void carry_out(const Answerable<json>& request, Response& response) const {
    if (!request) return refuse(response, request.error().status, request.error().why);
    const auto answer = live::send_request(fabric_socket_, *request);
    if (!answer) return refuse(response, kConflict, answer.error().text);
    response.set_content("{}", "application/json");
  }

  const std::string fabric_socket_;
  const WebRequests requests_;
  FabricWatcher watcher_;
  std::atomic<int> readers_{0};
};

}  // namespace

wire::Result<void> serve_web(const WebOptions& options) {
  std::string token;
  if (options.control || !options.listen.is_loopback()) {
    token = draw_token();
    if (token.empty()) {
      return wire::unavailable("no random numbers for the page's token");
    }
  }
  ::signal(SIGPIPE, SIG_IGN);
  static_cast<void>(block_endings());  // in the watcher's thread as well
  Site site(options, token);
  return serve_http(
      options.listen, kWebLimits, [&](httplib::Server& server) { site.set_up(server); },
      [&](const std::string& url) {
        std::cout << "the fabric's live page at " << url << "/"
                  << (token.empty() ? "" : "#" + token) << std::endl;
      },
      [&] { site.end(); });
}

}  // namespace cepheus::tools
