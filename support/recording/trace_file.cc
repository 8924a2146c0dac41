// Each event is one line of JSON, written at once; nothing is kept. Spans are asynchronous pairs
// "b" and "e", arrows flow events "s" and "f", each pair with an identifier of its own. An end
// before its beginning is moved to the beginning. Bytes that are not UTF-8 are replaced.
#include "support/recording/trace_file.h"

#include <algorithm>
#include <ostream>

namespace cepheus::recording {
namespace {

// Names may have any bytes; the file is UTF-8.
std::string text_of(const TraceFile::Json& json) {
  return json.dump(-1, ' ', false, TraceFile::Json::error_handler_t::replace);
}

// The format counts microseconds.
double microseconds(std::int64_t ns) { return static_cast<double>(ns) / 1000; }

}  // namespace

TraceFile::TraceFile(std::ostream& out, std::int64_t origin_ns) : out_(out), origin_ns_(origin_ns) {
  out_ << "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
}

void TraceFile::write(const Json& event) {
  out_ << (is_first_ ? "\n" : ",\n") << text_of(event);
  is_first_ = false;
}

TraceFile::Json TraceFile::event(const char* phase, Place at, std::string_view name) const {
  return {{"ph", phase},
          {"pid", at.track.process},
          {"tid", at.track.thread},
          {"ts", microseconds(at.at_ns - origin_ns_)},
          {"name", name}};
}

void TraceFile::name_process(std::uint32_t process, std::string_view name, std::uint32_t order) {
  write({{"ph", "M"}, {"pid", process}, {"name", "process_name"}, {"args", {{"name", name}}}});
  write({{"ph", "M"},
         {"pid", process},
         {"name", "process_sort_index"},
         {"args", {{"sort_index", order}}}});
}

void TraceFile::name_thread(Track track, std::string_view name) {
  write({{"ph", "M"},
         {"pid", track.process},
         {"tid", track.thread},
         {"name", "thread_name"},
         {"args", {{"name", name}}}});
}

void TraceFile::slice(Place begin, std::int64_t duration_ns, std::string_view name,
                      const Json& args) {
  Json one = event("X", begin, name);
  one["dur"] = microseconds(std::max<std::int64_t>(duration_ns, 0));
  one["args"] = args;
  write(one);
}

void TraceFile::span(Place begin, std::int64_t end_ns, std::string_view name, const Json& args) {
  const std::uint64_t id = ++last_id_;
  for (const char* const phase : {"b", "e"}) {
    const bool begins = *phase == 'b';
    const std::int64_t at = begins ? begin.at_ns : std::max(begin.at_ns, end_ns);
    Json one = event(phase, {begin.track, at}, name);
    one["cat"] = "span";
    one["id"] = id;
    if (begins) one["args"] = args;
    write(one);
  }
}

void TraceFile::instant(Place at, std::string_view name, const Json& args) {
  Json one = event("i", at, name);
  one["s"] = "t";
  one["args"] = args;
  write(one);
}

void TraceFile::arrow(Place from, Place to, std::string_view name) {
  const std::uint64_t id = ++last_id_;
  for (const char* const phase : {"s", "f"}) {
    const bool begins = *phase == 's';
    const std::int64_t at = begins ? from.at_ns : std::max(from.at_ns, to.at_ns);
    Json one = event(phase, {begins ? from.track : to.track, at}, name);
    one["cat"] = "packet";
    one["id"] = id;
    if (!begins) one["bp"] = "e";  // binds to the enclosing slice, not to the next one
    write(one);
  }
}

void TraceFile::finish(const Json& notes) {
  out_ << "\n],\"otherData\":" << text_of(notes) << "}\n" << std::flush;
}

}  // namespace cepheus::recording
