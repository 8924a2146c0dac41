// A port's frames as a pcap file for Wireshark: Ethernet frames, nanosecond time stamps, both
// directions.
//
// A deferred ICRC is computed here, for the capture only; the frame itself is not changed. If the
// file can't grow, the capture ends after its last whole frame.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "wire/frame.h"
#include "wire/result.h"
#include "wire/unique_fd.h"

struct pcap;
struct pcap_dumper;

namespace cepheus::live {

class PcapTap {
 public:
  // Creates or replaces `path`. The file is complete when the tap is destroyed. `warn` is called
  // with the reason if the capture ends earlier.
  static wire::Result<std::unique_ptr<PcapTap>> create(
      const std::string& path, std::function<void(const std::string&)> warn = [](const auto&) {});
  ~PcapTap();

  // Stamped with the wall-clock time of the call.
  void write(const wire::Frame& frame);
  // Flushes the frames written so far, if there are new ones.
  void flush();

 private:
  PcapTap() = default;
  // Whether all frames written so far fit into the file, or into the buffer before it.
  bool is_intact() const;
  void give_up(int error);
  bool cut_behind_last_frame();

  std::string path_;
  std::function<void(const std::string&)> warn_;
  pcap* handle_ = nullptr;
  pcap_dumper* dumper_ = nullptr;  // null: the capture has ended
  std::vector<std::uint8_t> bytes_;
  bool dirty_ = false;
  wire::UniqueFd file_;             // the capture's
  std::int64_t flushed_ = 0;        // bytes of the file, whole frames
  std::vector<std::int64_t> ends_;  // ends of the frames after these
};

}  // namespace cepheus::live
