// What a port sees, as a pcap file that Wireshark opens: Ethernet frames, nanosecond time stamps,
// both directions.
//
// A deferred ICRC is made here, for the capture only; the frame itself is not touched. Where the
// file can't grow, the capture ends behind its last whole frame.
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
  // Creates or replaces `path`. The file is complete once the tap is destroyed. `warn` is called if
  // the capture ends before, with the reason.
  static wire::Result<std::unique_ptr<PcapTap>> create(
      const std::string& path, std::function<void(const std::string&)> warn = [](const auto&) {});
  ~PcapTap();
  PcapTap(const PcapTap&) = delete;
  PcapTap& operator=(const PcapTap&) = delete;

  // Stamped with the wall-clock time of the call.
  void write(const wire::Frame& frame);
  // Brings what was written so far to the file, if there is something new.
  void flush();

 private:
  PcapTap() = default;
  // Whether what was written so far has its place in the file, or in the buffer before it.
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
  std::vector<std::int64_t> ends_;  // of the frames behind these
};

}  // namespace cepheus::live
