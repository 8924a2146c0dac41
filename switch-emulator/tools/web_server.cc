#include "switch-emulator/tools/web_server.h"

#include <httplib.h>
#include <sys/random.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>

#include "switch-emulator/live/control_protocol.h"
#include "switch-emulator/live/printable.h"
#include "switch-emulator/tools/fabric_watcher.h"
#include "switch-emulator/tools/web_files.h"

namespace cepheus::tools {
namespace {

using httplib::Request;
using httplib::Response;
using nlohmann::json;

// A reader of events holds a worker, and for its two seconds of patience so does whoever says nothing
// more: a crowd of those leaves some for the page itself. Who has said nothing yet waits in the kernel.
constexpr int kMostReaders = 16, kMostSilent = 224;
constexpr HttpLimits kWebLimits{kMostReaders + kMostSilent + 16, 32, 64, 4096};
constexpr char kText[] = "text/plain; charset=utf-8";
constexpr int kForbidden = 403, kBadRequest = 400, kConflict = 409, kUnavailable = 503;

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

// Takes as long wherever they differ.
bool is_same(const std::string& given, const std::string& token) {
  if (given.size() != token.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < token.size(); ++i) {
    difference |= static_cast<unsigned char>(given[i] ^ token[i]);
  }
  return difference == 0;
}

class Site {
 public:
  Site(const WebOptions& options, std::string token)
      : options_(options),
        token_(std::move(token)),
        watcher_(options.fabric_socket, options.control) {}

  void set_up(httplib::Server& server) {
    server.set_pre_routing_handler([this](const Request& request, Response& response) {
      protect(response);
      return may_enter(request, response) ? httplib::Server::HandlerResponse::Unhandled
                                          : httplib::Server::HandlerResponse::Handled;
    });
    const auto page = [&server](const char* path, const char* text, const char* type) {
      server.Get(path, [text, type](const Request&, Response& r) { r.set_content(text, type); });
    };
    page("/", kPageHtml, "text/html; charset=utf-8");
    page("/page.css", kPageCss, "text/css; charset=utf-8");
    page("/page.js", kPageJs, "text/javascript; charset=utf-8");
    server.Get("/view.json", [this](const Request& request, Response& response) {
      if (!may_read(request, response)) return;
      const auto view = watcher_.next(0);
      response.set_content(view ? view->json : "{}", "application/json");
    });
    server.Get("/events", [this](const Request& request, Response& response) {
      if (may_read(request, response)) stream(response);
    });
    server.Post("/link", [this](const Request& request, Response& response) {
      if (const auto body = order_of(request, response)) change_link(*body, response);
    });
    server.Post("/kill", [this](const Request& request, Response& response) {
      if (const auto body = order_of(request, response)) kill_process(*body, response);
    });
  }
  void end() { watcher_.end(); }

 private:
  static void refuse(Response& response, int status, const std::string& why) {
    response.status = status;
    response.set_content(live::printable(why) + "\n", kText);
  }

  // Nothing from elsewhere, no frame around it, no name of the page to others.
  static void protect(Response& response) {
    response.set_header("Content-Security-Policy",
                        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src "
                        "'self'; img-src data:; base-uri 'none'; form-action 'none'; "
                        "frame-ancestors 'none'");
    response.set_header("X-Content-Type-Options", "nosniff");
    response.set_header("Referrer-Policy", "no-referrer");
    response.set_header("Cache-Control", "no-store");
  }

  // A page from elsewhere could have its own name point at this machine: without a token, who asks
  // has to call it by its address.
  bool may_enter(const Request& request, Response& response) const {
    if (!token_.empty()) return true;
    std::string host = request.get_header_value("Host");
    const std::size_t colon = host.rfind(':');
    if (colon != std::string::npos && host.find(']', colon) == std::string::npos) {
      host.resize(colon);
    }
    if (host == "localhost" || host == "[::1]" || host == options_.listen.host) return true;
    refuse(response, kForbidden, "this page is served to this machine: open it by its address");
    return false;
  }
  bool may_read(const Request& request, Response& response) const {
    if (token_.empty() || is_same(request.get_param_value("token"), token_)) return true;
    refuse(response, kForbidden, "the token is missing or wrong: open the address as printed");
    return false;
  }
  // The body of a POST that may be carried out. No form of another page can send this type.
  std::optional<json> order_of(const Request& request, Response& response) const {
    if (!options_.control) {
      refuse(response, kForbidden, "read only: start cepheusctl web with --control");
      return std::nullopt;
    }
    if (!may_read(request, response)) return std::nullopt;
    json body = json::parse(request.body, nullptr, false);
    if (request.get_header_value("Content-Type") != "application/json" || !body.is_object()) {
      refuse(response, kBadRequest, "send a JSON object");
      return std::nullopt;
    }
    return body;
  }

  void stream(Response& response) {
    if (readers_.fetch_add(1) >= kMostReaders) {
      readers_.fetch_sub(1);
      return refuse(response, kUnavailable,
                    std::to_string(kMostReaders) + " others are looking: close one of them");
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

  void change_link(const json& body, Response& response) const {
    json request = {{"ask", "link"}, {"direction", "both"}};
    for (const char* key : {"link", "loss", "up"}) {
      if (body.contains(key)) request[key] = body[key];
    }
    const auto answer = live::ask(options_.fabric_socket, request);
    if (!answer) return refuse(response, kConflict, answer.error().text);
    response.set_content("{}", "application/json");
  }

  // The fabric does it, to a client of its own: this process may have rights that the fabric has not.
  void kill_process(const json& body, Response& response) const {
    const json host = body.value("host", json()), pid = body.value("pid", json());
    if (!host.is_string() || !pid.is_number_integer()) {
      return refuse(response, kBadRequest, "name a host and the process there");
    }
    const auto answer =
        live::ask(options_.fabric_socket, {{"ask", "kill"}, {"host", host}, {"pid", pid}});
    if (!answer) return refuse(response, kConflict, answer.error().text);
    response.set_content("{}", "application/json");
  }

  const WebOptions options_;
  const std::string token_;
  FabricWatcher watcher_;
  std::atomic<int> readers_{0};
};

}  // namespace

wire::Result<void> serve_web(const WebOptions& options) {
  std::string token;
  if (options.control || !options.listen.is_loopback()) {
    token = draw_token();
    if (token.empty()) {
      return wire::fail(wire::ErrorCode::kUnavailable, "no random numbers for the page's token");
    }
  }
  ::signal(SIGPIPE, SIG_IGN);
  // In all threads, the watcher's among them.
  sigset_t endings;
  sigemptyset(&endings);
  sigaddset(&endings, SIGINT);
  sigaddset(&endings, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &endings, nullptr);
  Site site(options, token);
  return serve_http(
      options.listen, kWebLimits, [&](httplib::Server& server) { site.set_up(server); },
      [&](const std::string& url) {
        std::cout << "the fabric's picture at " << url << "/" << (token.empty() ? "" : "#" + token)
                  << std::endl;
      },
      [&] { site.end(); });
}

}  // namespace cepheus::tools
