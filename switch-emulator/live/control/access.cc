// Users are resolved once, when the fabric starts or reloads its topology. A text that is a number
// is that user id, whether the user exists or not; any other text is looked up by getpwnam_r(3). A
// failed look-up is an error of its own, not an absent user.
#include "switch-emulator/live/control/access.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

namespace cepheus::live {
namespace {

// Empty: there is no such user.
wire::Result<std::optional<uid_t>> user_id(const std::string& text) {
  uid_t number = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec == std::errc() && parsed.ptr == end) return number;
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 4096> strings;
  const int error = getpwnam_r(text.c_str(), &entry, strings.data(), strings.size(), &found);
  if (error != 0 && error != ENOENT && error != ESRCH) {
    return wire::unavailable("users: can't look for user '" + text + "': " + std::strerror(error));
  }
  return found != nullptr ? std::optional(found->pw_uid) : std::nullopt;
}

}  // namespace

Access::Access(std::vector<uid_t> users) : own_(geteuid()), users_(std::move(users)) {}

wire::Result<Access> Access::of(const std::vector<std::string>& users) {
  std::vector<uid_t> ids;
  for (const std::string& user : users) {
    const auto id = user_id(user);
    if (!id) return tl::unexpected(id.error());
    if (!*id) {
      return wire::invalid("users: there is no user '" + user + "' here; write a name or a number");
    }
    ids.push_back(**id);
  }
  return Access(std::move(ids));
}

bool Access::may_command(uid_t user) const { return user == own_ || user == 0; }

bool Access::may_attach(uid_t user) const {
  return may_command(user) || std::find(users_.begin(), users_.end(), user) != users_.end();
}

}  // namespace cepheus::live
