// Writes a timeline as a file for ui.perfetto.dev and chrome://tracing: the JSON object form of
// Chrome's Trace Event Format, event by event.
//
// Tracks are threads of processes: here a process is a host, a switch or a group. Slices of one
// thread don't overlap. Spans may, so each gets a row of its own. Both are written at their end, so
// each has one. Times are nanoseconds on any clock.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <nlohmann/json.hpp>
#include <string_view>

namespace cepheus::recording {

struct Track {
  std::uint32_t process = 0;
  std::uint32_t thread = 0;
  friend auto operator<=>(const Track&, const Track&) = default;
};

// The beginning of a slice on a track: arrows begin and end there.
struct Place {
  Track track;
  std::int64_t at_ns = 0;
};

class TraceFile {
 public:
  using Json = nlohmann::json;

  // `origin_ns` is the file's time 0. `out` outlives the writer.
  explicit TraceFile(std::ostream& out, std::int64_t origin_ns = 0);
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  // The viewer sorts processes by `order`, the smallest first.
  void name_process(std::uint32_t process, std::string_view name, std::uint32_t order);
  void name_thread(Track track, std::string_view name);

  void slice(Place begin, std::int64_t duration_ns, std::string_view name, const Json& args);
  void span(Place begin, std::int64_t end_ns, std::string_view name, const Json& args);
  void instant(Place at, std::string_view name, const Json& args);
  // An arrow from one slice's beginning to a later or equal one.
  void arrow(Place from, Place to, std::string_view name);

  // Ends the file with `notes`, such as counts of events left out. Nothing may follow.
  void finish(const Json& notes);

 private:
  Json event(const char* phase, Place at, std::string_view name) const;
  void write(const Json& event);

  std::ostream& out_;
  const std::int64_t origin_ns_;
  std::uint64_t last_id_ = 0;
  bool is_first_ = true;
};

}  // namespace cepheus::recording
