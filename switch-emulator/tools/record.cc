// Every kBetweenLooks: extend the programs' lease, read their rings of calls, request the fabric's
// packets. Every kLooksBetweenStatus looks request its status, too, for late members of reductions.
// All goes into one timeline file. A call appears at its host's row if its program's address is
// known, else at a row of its own.
//
// The file is created only after the fabric has answered, and is always finished, even if the
// fabric ends. Counts of lost records are part of it. Calls that began earlier are left out. Rings
// of ended programs are deleted after kForOthers.
#include "switch-emulator/tools/record.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "support/recording/timeline.h"
#include "support/recording/trace_file.h"
#include "support/reports/call_report.h"
#include "support/reports/recorded_calls.h"
#include "support/reports/report_directory.h"
#include "switch-emulator/live/status/control_protocol.h"
#include "switch-emulator/live/status/status.h"
#include "switch-emulator/tools/endings.h"
#include "switch-emulator/tools/late_tracks.h"
#include "wire/clock.h"

namespace cepheus::tools {
namespace {

using nlohmann::json;
using recording::Sighting;

constexpr timespec kBetweenLooks{0, 20'000'000};
constexpr unsigned kLooksBetweenStatus = 5;       // a status is longer than an answer about packets
constexpr std::int64_t kLeaseNs = 2'000'000'000;  // many polls

std::int64_t now_ns() { return wire::monotonic_now().time_since_epoch().count(); }

// The MPI function of a path: "MPI_Iallreduce" of "iallreduce: network", MPI_Bcast of "eager lane".
std::string function_of(const std::string& path) {
  const auto end = path.find(": ");
  if (end == std::string::npos) return "MPI_Bcast";
  std::string name = "MPI_" + path.substr(0, end);
  name[4] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[4])));
  return name;
}

bool is_multicast(const std::string& path) {
  return path.ends_with(" lane") || path.ends_with("hosts") || path.ends_with("network");
}

// Collective calls of this user's programs as tracks of a recording: one for each rank of each
// communicator, at its host if known.
class CallTracks {
 public:
  // The process of the host with this address, if any.
  using HostOf = std::function<std::optional<std::uint32_t>(std::uint32_t address)>;

  // `file` outlives it; calls that began before `since_ns` belong to an earlier recording.
  CallTracks(recording::TraceFile& file, std::string directory, std::int64_t since_ns,
             HostOf host_of)
      : file_(file),
        directory_(std::move(directory)),
        since_ns_(since_ns),
        host_of_(std::move(host_of)) {}
  // Writes the new records of all rings.
  void look();

  std::uint64_t calls() const { return calls_; }
  std::uint64_t lost() const;  // overwritten before they were read

 private:
  static constexpr std::uint32_t kFirstProgram = 2'000'000;  // process
  static constexpr std::chrono::seconds kForOthers{1};       // to read an ended process's ring

  struct Program {
    reports::CallRingReader ring;
    std::uint32_t process = 0;
    std::map<std::string, recording::Track> tracks;  // by communicator and rank
    std::map<std::pair<recording::Track, std::string>, std::string> last_path;  // by MPI function
  };

  // Writes its new records. True: its process has ended, so that no others follow.
  bool take_last(Program& program);
  void add(Program& program, const reports::CallRingReader::Call& call);
  recording::Track track_of(Program& program, const reports::CallText& text);
  std::uint32_t process_of(const reports::CallRingReader& ring);

  recording::TraceFile& file_;
  const std::string directory_;
  const std::int64_t since_ns_;
  const HostOf host_of_;
  std::map<std::string, Program> programs_;     // by their ring's path
  std::map<std::string, wire::Instant> ended_;  // paths of closed rings, and since when
  std::uint32_t threads_ = 0;
  std::uint32_t strangers_ = 0;
  std::uint64_t calls_ = 0;
  std::uint64_t lost_of_ended_ = 0;
};

// An open ring holds a descriptor. New rings of ended processes are closed one by one, because all of
// them together may exceed the limit of open files. Their files take memory, and stay for a while:
// another recorder of this user may not have read them.
void CallTracks::look() {
  const wire::Instant now = wire::monotonic_now();
  for (const std::string& path : reports::find_rings(directory_)) {
    if (programs_.contains(path) || ended_.contains(path)) continue;
    auto ring = reports::CallRingReader::open(path);
    if (!ring) continue;
    Program program{std::move(*ring), 0, {}, {}};
    if (take_last(program)) {
      ended_.emplace(path, now);
    } else {
      programs_.emplace(path, std::move(program));
    }
  }
  for (auto at = programs_.begin(); at != programs_.end();) {
    const bool has_ended = take_last(at->second);
    if (has_ended) ended_.emplace(at->first, now);
    at = has_ended ? programs_.erase(at) : std::next(at);
  }
  std::erase_if(ended_, [now](const auto& each) {
    return now - each.second >= kForOthers && ::unlink(each.first.c_str()) == 0;
  });
}

bool CallTracks::take_last(Program& program) {
  const bool has_ended = program.ring.is_abandoned();  // before the read, which then sees all
  for (const auto& call : program.ring.take()) {
    if (call.begin_ns >= since_ns_) add(program, call);
  }
  if (has_ended) lost_of_ended_ += program.ring.lost();
  return has_ended;
}

std::uint64_t CallTracks::lost() const {
  std::uint64_t sum = lost_of_ended_;
  for (const auto& [path, program] : programs_) sum += program.ring.lost();
  return sum;
}

// A program that is at no port of this fabric has its own row.
std::uint32_t CallTracks::process_of(const reports::CallRingReader& ring) {
  if (const auto host = host_of_(ring.address())) return *host;
  const std::uint32_t process = kFirstProgram + strangers_++;
  file_.name_process(process, ring.program() + ", process " + std::to_string(ring.pid()), process);
  return process;
}

recording::Track CallTracks::track_of(Program& program, const reports::CallText& text) {
  const std::string name =
      "rank " + std::to_string(text.rank) + " of " + reports::get_text(text.communicator);
  const auto known = program.tracks.find(name);
  if (known != program.tracks.end()) return known->second;
  if (program.process == 0) program.process = process_of(program.ring);
  const recording::Track track{program.process, LateTracks::kThread + ++threads_};
  file_.name_thread(track, name);
  return program.tracks.emplace(name, track).first->second;
}

void CallTracks::add(Program& program, const reports::CallRingReader::Call& call) {
  const recording::Track track = track_of(program, call.text);
  const std::string path = reports::get_text(call.text.path);
  const recording::TraceFile::Json args = {
      {"communicator", reports::get_text(call.text.communicator)},
      {"rank", call.text.rank},
      {"root", call.root},
      {"bytes", call.bytes},
      {"path", path},
      {"reason", reports::get_text(call.text.reason)}};
  ++calls_;
  const std::string function = function_of(path);
  if (function.starts_with("MPI_I")) {
    file_.span({track, call.begin_ns}, call.end_ns, function, args);
  } else {
    file_.slice({track, call.begin_ns}, call.end_ns - call.begin_ns, function, args);
  }
  std::string& before = program.last_path[{track, function}];
  if (is_multicast(before) && !is_multicast(path)) {
    file_.instant({track, call.begin_ns}, "fallback", args);
  }
  before = path;
}

// The fabric's switches by their numbers, then its hosts.
struct Nodes {
  std::vector<recording::Node> list;
  std::map<std::uint32_t, std::uint16_t> hosts;  // by address

  static Nodes of(const live::FabricStatus& status, const std::vector<std::string>& counters);
};

// Parallel cables between two switches have numbers, equal at both ends.
std::optional<recording::Peer> far_end(const live::FabricStatus& status, std::size_t near,
                                       const std::string& port_name) {
  const std::string far = live::neighbour_name(port_name);
  const std::string back = status.switches[near].name + port_name.substr(far.size());
  for (std::size_t s = 0; s < status.switches.size(); ++s) {
    if (status.switches[s].name != far) continue;
    for (const live::PortStatus& port : status.switches[s].ports) {
      if (port.kind == net::PortKind::kSwitch && port.name == back) {
        return recording::Peer{static_cast<std::uint16_t>(s), port.id.value()};
      }
    }
  }
  return std::nullopt;
}

Nodes Nodes::of(const live::FabricStatus& status, const std::vector<std::string>& counters) {
  Nodes nodes;
  for (const live::SwitchStatus& each : status.switches) {
    nodes.list.push_back({each.name, 0, true, {}, counters});
  }
  for (std::size_t s = 0; s < status.switches.size(); ++s) {
    for (const live::PortStatus& port : status.switches[s].ports) {
      std::optional<recording::Peer> peer;
      if (port.kind == net::PortKind::kHost) {
        const auto number = static_cast<std::uint16_t>(nodes.list.size());
        nodes.list.push_back({port.name, port.address.value(), false, {}, {}});
        nodes.list.back().ports.push_back(
            recording::Peer{static_cast<std::uint16_t>(s), port.id.value()});
        nodes.hosts[port.address.value()] = number;
        peer = recording::Peer{number, 0};
      } else {
        peer = far_end(status, s, port.name);
      }
      auto& ports = nodes.list[s].ports;
      ports.resize(std::max<std::size_t>(ports.size(), port.id.value() + 1u));
      ports[port.id.value()] = peer;
    }
  }
  return nodes;
}

// The fabric's side of a recording.
class PacketSource {
 public:
  explicit PacketSource(const RecordOptions& options) : options_(options) {}

  // False: no fabric answers any more.
  wire::Result<json> send_request(bool ends) const {
    json request = {{"ask", "record"},
                    {"recorder", static_cast<std::uint64_t>(::getpid())},
                    {"packets_per_second", options_.packets_per_second}};
    if (ends) request["end"] = true;
    return live::send_request(options_.fabric_socket, request);
  }
  void take(const json& answer, recording::Timeline& into) {
    const json events = answer.value("events", json::array());
    Sighting::Words words{};
    for (std::size_t i = 0; i + words.size() <= events.size(); i += words.size()) {
      for (std::size_t w = 0; w < words.size(); ++w) {
        words[w] = events[i + w].is_number_unsigned() ? events[i + w].get<std::uint64_t>() : 0;
      }
      into.see(Sighting::of(words));
      ++seen_;
    }
    lost_ = answer.value("lost", std::uint64_t{0});
    passed_over_ = answer.value("passed_over", std::uint64_t{0});
  }
  std::uint64_t seen() const { return seen_; }
  std::uint64_t lost() const { return lost_; }
  std::uint64_t passed_over() const { return passed_over_; }

 private:
  const RecordOptions& options_;
  std::uint64_t seen_ = 0, lost_ = 0, passed_over_ = 0;
};

// Lets programs record while it is extended. It ends with its owner, or by time if the owner dies.
class HeldLease {
 public:
  explicit HeldLease(reports::RecordingLease lease) : lease_(std::move(lease)) { extend(); }
  ~HeldLease() { lease_.end(); }
  HeldLease(const HeldLease&) = delete;
  HeldLease& operator=(const HeldLease&) = delete;
  void extend() { lease_.extend(now_ns() + kLeaseNs); }

 private:
  reports::RecordingLease lease_;
};

wire::Result<void> cant_write(const std::string& file) {
  return wire::invalid(file + " can't be written: " + std::strerror(errno));
}

std::int64_t end_of(const RecordOptions& options, std::int64_t began) {
  if (!options.seconds) return std::numeric_limits<std::int64_t>::max();
  return began + static_cast<std::int64_t>(*options.seconds * 1e9);
}

void print_summary(const std::string& file, const CallTracks& calls, const PacketSource& packets) {
  std::cout << "recorded " << calls.calls() << " calls (" << calls.lost() << " lost) and "
            << packets.seen() << " sightings of packets (" << packets.passed_over()
            << " passed over, " << packets.lost() << " lost) in " << file
            << ": open it at ui.perfetto.dev" << std::endl;
}

wire::Result<void> record_at(const RecordOptions& options) {
  const sigset_t endings = block_endings({SIGINT, SIGTERM, SIGHUP});
  const auto status = live::request_status(options.fabric_socket);
  if (!status) return tl::unexpected(status.error());
  const std::string directory = reports::default_directory();
  if (auto made = reports::ReportDirectory::make(directory); !made) {
    return tl::unexpected(made.error());
  }
  auto lease = reports::RecordingLease::open(directory);
  if (!lease) return tl::unexpected(lease.error());
  PacketSource packets(options);
  const std::int64_t began = now_ns();
  auto answer = packets.send_request(false);
  if (!answer) return tl::unexpected(answer.error());
  // Only now: an existing file stays unchanged if there is nothing to record.
  std::ofstream out(options.file);
  if (!out) {
    auto why = cant_write(options.file);  // before another call changes errno
    (void)packets.send_request(true);
    return why;
  }
  recording::TraceFile file(out, began);
  const auto names = answer->value("counters", std::vector<std::string>());
  const Nodes nodes = Nodes::of(*status, names);
  recording::Timeline timeline(file, nodes.list);
  CallTracks calls(file, directory, began,
                   [&nodes](std::uint32_t address) -> std::optional<std::uint32_t> {
                     const auto at = nodes.hosts.find(address);
                     if (at == nodes.hosts.end()) return std::nullopt;
                     return recording::Timeline::process_of(at->second);
                   });
  LateTracks late(file, nodes.list, began);
  {
    HeldLease held(std::move(*lease));
    std::cout << "recording into " << options.file << std::endl;
    const std::int64_t until = end_of(options, began);
    unsigned looks = 0;
    while (now_ns() < until && answer && ::sigtimedwait(&endings, nullptr, &kBetweenLooks) < 0) {
      held.extend();
      if (looks++ % kLooksBetweenStatus == 0) {
        if (const auto seen = live::request_status(options.fabric_socket)) late.look(*seen);
      }
      calls.look();
      answer = packets.send_request(false);
      if (answer) packets.take(*answer, timeline);
    }
  }
  // Records still under way when the lease ended.
  ::nanosleep(&kBetweenLooks, nullptr);
  calls.look();
  reports::clear_rings(directory);
  const bool failed_here = !answer && answer.error().code == wire::ErrorCode::kFailed;
  const bool fabric_ended = !answer && !failed_here;
  if (!fabric_ended) {
    if (const auto last = packets.send_request(true)) packets.take(*last, timeline);
  }
  timeline.close(now_ns());
  late.close();
  file.finish(
      {{"clock", "CLOCK_MONOTONIC of this machine; recordings of two can't be laid together"},
       {"calls", calls.calls()},
       {"calls_lost", calls.lost()},
       {"packets", packets.seen()},
       {"packets_passed_over", packets.passed_over()},
       {"packets_lost", packets.lost()},
       {"fabric_ended", fabric_ended}});
  if (!out) return cant_write(options.file);
  if (failed_here) return tl::unexpected(answer.error());
  print_summary(options.file, calls, packets);
  return {};
}

}  // namespace

wire::Result<void> record(const RecordOptions& options) {
  try {
    return record_at(options);
  } catch (const json::exception& e) {
    return wire::fail(wire::ErrorCode::kFailed, "the fabric's answer is not a recording (" +
                                                    std::string(e.what()) +
                                                    "): is cepheus-switch of the same version?");
  }
}

}  // namespace cepheus::tools
