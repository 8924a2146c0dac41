// A loop: draw, wait for keys, signals or the time of the next view, look. The terminal is in raw
// mode on its alternate screen, and its state is restored on every return. SIGINT, SIGTERM and
// SIGHUP end it as "q" does; SIGWINCH draws anew. A pause keeps the view while looks go on. The
// first error of a look ends it.
#include "switch-emulator/tools/top.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "switch-emulator/live/status/printable.h"
#include "switch-emulator/tools/endings.h"
#include "switch-emulator/tools/top_frame.h"
#include "switch-emulator/tools/view_source.h"
#include "wire/unique_fd.h"

namespace cepheus::tools {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBetweenRates{1000}, kFirstRates{500};

// Alternate screen, without echo and with unbuffered keys; the old screen comes back at the end.
class Terminal {
 public:
  Terminal() {
    ::tcgetattr(STDIN_FILENO, &before_);
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw);
    std::cout << "\033[?1049h\033[?25l" << std::flush;
  }
  ~Terminal() {
    std::cout << "\033[?25h\033[?1049l" << std::flush;
    ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  static void measure(TopScreen& screen) {
    winsize size{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0) {
      screen.rows = size.ws_row;
      screen.columns = size.ws_col;
    }
  }
  // Overwrites without clearing first, so that nothing flickers.
  static void draw(const std::vector<std::string>& frame) {
    std::string text = "\033[H";
    for (std::size_t i = 0; i < frame.size(); ++i) {
      text += frame[i] + "\033[K" + (i + 1 < frame.size() ? "\r\n" : "");
    }
    std::cout << text << "\033[J" << std::flush;
  }

 private:
  termios before_{};
};

// Signals that end it or change the screen's size, as a descriptor.
class Signals {
 public:
  Signals() {
    const sigset_t set = block_endings({SIGINT, SIGTERM, SIGHUP, SIGWINCH});
    fd_.reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    // No descriptor is left: by their own actions the signals still end it.
    if (!fd_.is_open()) ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  }
  int fd() const { return fd_.get(); }
  bool is_stop_requested() const {
    signalfd_siginfo info;
    bool ends = false;
    while (::read(fd(), &info, sizeof info) == sizeof info) ends |= info.ssi_signo != SIGWINCH;
    return ends;
  }

 private:
  wire::UniqueFd fd_;
};

// False: quit.
bool obey(const std::string& keys, TopScreen& screen) {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const bool is_arrow = keys.compare(i, 2, "\033[") == 0 && i + 2 < keys.size();
    const char key = is_arrow ? keys[i += 2] : keys[i];
    if (!is_arrow && (key == 'q' || key == 'Q')) return false;
    if (!is_arrow && key == 's') screen.by_name = !screen.by_name;
    if (!is_arrow && key == ' ') screen.is_paused = !screen.is_paused;
    if (is_arrow && key == 'B') ++screen.skip;
    if (is_arrow && key == 'A' && screen.skip > 0) --screen.skip;
  }
  return true;
}

// Waits for keys, signals or the next poll. False: quit.
bool wait(const Signals& signals, steady_clock::time_point until, TopScreen& screen) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(until - steady_clock::now());
  pollfd fds[] = {{STDIN_FILENO, POLLIN, 0}, {signals.fd(), POLLIN, 0}};
  const int ready = ::poll(fds, 2, static_cast<int>(std::max<std::int64_t>(left.count() + 1, 0)));
  if (ready < 0 && errno != EINTR) return false;
  if (signals.is_stop_requested()) return false;
  if ((fds[0].revents & (POLLHUP | POLLERR)) != 0) return false;
  char keys[64];
  const ssize_t got = ::read(STDIN_FILENO, keys, sizeof keys);
  return obey(std::string(keys, got > 0 ? static_cast<std::size_t>(got) : 0), screen);
}

}  // namespace

wire::Result<void> show_top(const std::string& fabric_socket, bool colour) {
  ViewSource source(fabric_socket);
  auto view = source.look();
  if (!view) return tl::unexpected(view.error());
  TopScreen screen;
  screen.colour = colour;
  const Signals signals;
  const Terminal terminal;
  auto next = steady_clock::now() + kFirstRates;  // first rates soon
  while (true) {
    Terminal::measure(screen);
    Terminal::draw(top_frame(*view, screen));
    if (!wait(signals, next, screen)) return {};
    if (steady_clock::now() < next) continue;
    next = steady_clock::now() + kBetweenRates;
    auto newer = source.look();
    if (!newer) return tl::unexpected(newer.error());
    if (!screen.is_paused) view = std::move(newer);
  }
}

wire::Result<std::string> top_once(const std::string& fabric_socket, bool as_json) {
  ViewSource source(fabric_socket);
  if (auto first = source.look(); !first) return tl::unexpected(first.error());
  std::this_thread::sleep_for(kFirstRates);
  const auto view = source.look();
  if (!view) return tl::unexpected(view.error());
  if (as_json) return live::json_text(*view, 2) + "\n";
  TopScreen screen;
  screen.rows = 10'000;
  std::string text;
  std::vector<std::string> lines = top_frame(*view, screen);
  lines.pop_back();  // keys have no effect here
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

}  // namespace cepheus::tools
