// All events in order: always as a hash, and as text if a stream is set.
//
// Two runs of one seed must have equal hashes. Otherwise the run depends on a clock, on an order by
// addresses or on an uninitialised byte.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string_view>

#include "wire/frame.h"

namespace cepheus::sim {

class Recorder;

class Trace {
 public:
  void print_to(std::ostream* out) { out_ = out; }  // null: hash only
  // Neither text nor hash, for measurements.
  void turn_off() { is_off_ = true; }
  // Gets the same events; null: none. It outlives the run.
  void record_to(Recorder* recorder) { recorder_ = recorder; }
  Recorder* recorder() const { return recorder_; }
  bool is_off() const { return is_off_; }

  // "12.5us h0 sends ...": a frame at a place, by headers, length and ICRC.
  void frame(wire::Instant at, std::string_view place, std::string_view verb,
             const wire::Frame& frame);
  void note(wire::Instant at, std::string_view place, std::string_view text,
            std::uint64_t value = 0);

  std::uint64_t hash() const { return hash_; }

 private:
  void mix(const void* data, std::size_t size);
  void mix(wire::Instant at, std::string_view place, std::string_view verb);
  void begin_line(wire::Instant at, std::string_view place, std::string_view verb);

  std::uint64_t hash_ = 0xCBF29CE484222325ull;
  std::ostream* out_ = nullptr;
  bool is_off_ = false;
  Recorder* recorder_ = nullptr;
};

}  // namespace cepheus::sim
