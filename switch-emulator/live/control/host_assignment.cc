// A wanted text is compared with each host's name, address and "#index", and the first host that
// fits is the answer. A taken or reserved host leads to any free one only if the client agrees
// (or_any). "Any" means free and not reserved.
//
// A reservation by names is all or nothing, and names no host twice. By number it takes the first
// free hosts; 0 takes all free ones, at least one.
#include "switch-emulator/live/control/host_assignment.h"

#include <algorithm>
#include <cassert>
#include <charconv>

namespace cepheus::live {
namespace {

std::optional<std::size_t> parse_index(const std::string& text) {
  if (text.empty() || text[0] != '#') return std::nullopt;
  std::size_t index = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data() + 1, end, index);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return index;
}

std::string process_text(pid_t pid) {
  return pid > 0 ? "pid " + std::to_string(pid) : "a process elsewhere";
}

}  // namespace

HostAssignment::HostAssignment(std::vector<Host> hosts, Ports& ports)
    : hosts_(std::move(hosts)), ports_(ports), reservations_(hosts_.size()) {}

HostAssignment::Choice HostAssignment::take(std::size_t host, const Claim& claim) const {
  const std::string name = "host " + hosts_[host].name + " ";
  if (!ports_.is_free(host)) {
    return {host, fabric::WelcomeStatus::kHostTaken, name + ports_.why_not_free(host)};
  }
  if (is_kept_from(host, claim)) {
    return {host, fabric::WelcomeStatus::kHostTaken,
            name + "is reserved by " + process_text(reservations_[host].holder.pid) +
                " for its job: wait until it ends, or choose another host"};
  }
  return {host, fabric::WelcomeStatus::kGranted, ""};
}

HostAssignment::Choice HostAssignment::take_named(const std::string& wanted,
                                                  const Claim& claim) const {
  const auto address = wire::Ipv4::parse(wanted);
  const auto index = parse_index(wanted);
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    if (hosts_[host].name == wanted || address == hosts_[host].address || index == host) {
      return take(host, claim);
    }
  }
  const std::string& first = hosts_.front().name;
  const std::string all = hosts_.size() == 1 ? first : first + " .. " + hosts_.back().name;
  return {0, fabric::WelcomeStatus::kNoSuchHost,
          "no host '" + wanted + "' in the fabric: it has " + all};
}

HostAssignment::Choice HostAssignment::take_any() const {
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    if (is_anybodys(host)) return {host, fabric::WelcomeStatus::kGranted, ""};
  }
  return {0, fabric::WelcomeStatus::kHostTaken,
          "all " + std::to_string(hosts_.size()) +
              " hosts of the fabric are taken: start one with more"};
}

HostAssignment::Choice HostAssignment::choose(const fabric::AttachRequest& hello,
                                              uid_t user) const {
  if (hello.host.empty()) return take_any();
  Choice named = take_named(hello.host, {hello.reservation, user});
  const bool may_be_another = hello.or_any && named.status == fabric::WelcomeStatus::kHostTaken;
  return may_be_another ? take_any() : named;
}

HostAssignment::Selection HostAssignment::select_named(const std::string& names) const {
  Selection selection;
  for (std::size_t begin = 0; begin <= names.size();) {
    const std::size_t end = std::min(names.find(',', begin), names.size());
    const Choice choice = take_named(names.substr(begin, end - begin), {});
    if (choice.status != fabric::WelcomeStatus::kGranted) return {{}, choice.status, choice.text};
    auto& hosts = selection.hosts;
    if (std::find(hosts.begin(), hosts.end(), choice.host) != hosts.end()) {
      return {{},
              fabric::WelcomeStatus::kHostTaken,
              "host " + hosts_[choice.host].name + " is named twice: name it once"};
    }
    hosts.push_back(choice.host);
    begin = end + 1;
  }
  return selection;
}

HostAssignment::Selection HostAssignment::select_free(std::uint32_t number) const {
  Selection selection;
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    if (is_anybodys(host)) selection.hosts.push_back(host);
  }
  const std::size_t least = std::max<std::size_t>(number, 1);
  if (selection.hosts.size() < least) {
    return {{},
            fabric::WelcomeStatus::kHostTaken,
            std::to_string(least) + (least == 1 ? " free host is" : " free hosts are") +
                " wanted, and the fabric has " + std::to_string(selection.hosts.size()) + " of " +
                std::to_string(hosts_.size()) + ": wait for other jobs, or start one with more"};
  }
  if (number != 0) selection.hosts.resize(number);
  return selection;
}

HostAssignment::Reserved HostAssignment::reserve(const fabric::HostsWanted& wanted,
                                                 fabric::ReservationId id,
                                                 const fabric::PeerCredentials& holder) {
  assert(id != 0);
  const Selection selection =
      wanted.names.empty() ? select_free(wanted.number) : select_named(wanted.names);
  Reserved reserved{"", selection.status, selection.text};
  for (const std::size_t host : selection.hosts) {
    reservations_[host] = {id, holder};
    reserved.names += (reserved.names.empty() ? "" : ",") + hosts_[host].name;
  }
  return reserved;
}

void HostAssignment::end(fabric::ReservationId id) {
  for (Reservation& each : reservations_) {
    if (each.id == id) each = {};
  }
}

std::optional<pid_t> HostAssignment::reserved_by(std::size_t host) const {
  if (!is_reserved(host)) return std::nullopt;
  return reservations_[host].holder.pid;
}

}  // namespace cepheus::live
