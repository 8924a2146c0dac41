// What a port sees, as a pcap file that Wireshark opens: Ethernet frames, nanosecond time stamps,
// both directions.
//
// A deferred ICRC is made here, for the capture only; the frame itself is not touched.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "wire/frame.h"
#include "wire/result.h"

struct pcap;
struct pcap_dumper;

namespace cepheus::live {

class PcapTap {
 public:
  // Creates or replaces `path`. The file is complete once the tap is destroyed.
  static wire::Result<std::unique_ptr<PcapTap>> create(const std::string& path);
  ~PcapTap();
  PcapTap(const PcapTap&) = delete;
  PcapTap& operator=(const PcapTap&) = delete;

  // Stamped with the wall-clock time of the call.
  void write(const wire::Frame& frame);
  // Brings what was written so far to the file, if there is something new.
  void flush();

 private:
  PcapTap() = default;

  pcap* handle_ = nullptr;
  pcap_dumper* dumper_ = nullptr;
  std::vector<std::uint8_t> bytes_;
  bool dirty_ = false;
};

}  // namespace cepheus::live
