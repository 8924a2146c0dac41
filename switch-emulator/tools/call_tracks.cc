#include "switch-emulator/tools/call_tracks.h"

#include "support/recording/timeline.h"
#include "support/reports/call_report.h"

namespace cepheus::tools {
namespace {

constexpr std::string_view kUnattended = "ibcast: ";

bool is_multicast(const std::string& path) {
  return path.ends_with(" lane") || path.ends_with("hosts");
}

}  // namespace

CallTracks::CallTracks(recording::TraceFile& file, std::string directory, std::int64_t since_ns,
                       HostOf host_of)
    : file_(file),
      directory_(std::move(directory)),
      since_ns_(since_ns),
      host_of_(std::move(host_of)) {}

void CallTracks::look() {
  for (const std::string& path : reports::find_rings(directory_)) {
    auto at = programs_.find(path);
    if (at == programs_.end()) {
      auto ring = reports::CallRingReader::open(path);
      if (!ring) continue;
      at = programs_.emplace(path, Program{std::move(*ring), 0, {}, {}}).first;
    }
    Program& program = at->second;
    for (const auto& call : program.ring.take()) {
      if (call.begin_ns >= since_ns_) add(program, call);
    }
  }
}

std::uint64_t CallTracks::lost() const {
  std::uint64_t sum = 0;
  for (const auto& [path, program] : programs_) sum += program.ring.lost();
  return sum;
}

// A program that is at no port of this fabric has a row of its own.
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
  const recording::Track track{program.process, recording::Timeline::kFirstOwnThread + threads_++};
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
  if (path.starts_with(kUnattended)) {
    file_.span({track, call.begin_ns}, call.end_ns, "MPI_Ibcast", args);
  } else {
    file_.slice({track, call.begin_ns}, call.end_ns - call.begin_ns, "MPI_Bcast", args);
  }
  std::string& before = program.last_path[track];
  if (is_multicast(before) && !is_multicast(path)) {
    file_.instant({track, call.begin_ns}, "fallback", args);
  }
  before = path;
}

}  // namespace cepheus::tools
