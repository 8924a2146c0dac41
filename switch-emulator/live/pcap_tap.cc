#include "switch-emulator/live/pcap_tap.h"

#include <pcap/pcap.h>

#include <ctime>

namespace cepheus::live {
namespace {

constexpr int kSnapLength = 1 << 17;  // longer than any frame

}  // namespace

wire::Result<std::unique_ptr<PcapTap>> PcapTap::create(const std::string& path) {
  std::unique_ptr<PcapTap> tap(new PcapTap);
  tap->handle_ =
      pcap_open_dead_with_tstamp_precision(DLT_EN10MB, kSnapLength, PCAP_TSTAMP_PRECISION_NANO);
  if (tap->handle_ == nullptr) {
    return wire::fail(wire::ErrorCode::kUnavailable, "libpcap can't open a capture");
  }
  tap->dumper_ = pcap_dump_open(tap->handle_, path.c_str());
  if (tap->dumper_ == nullptr) {
    return wire::fail(wire::ErrorCode::kInvalid,
                      "can't write the capture " + path + ": " + pcap_geterr(tap->handle_));
  }
  pcap_dump_flush(tap->dumper_);  // readable, if empty, from now on
  return tap;
}

PcapTap::~PcapTap() {
  if (dumper_ != nullptr) pcap_dump_close(dumper_);
  if (handle_ != nullptr) pcap_close(handle_);
}

void PcapTap::write(const wire::Frame& frame) {
  bytes_.resize(frame.size());
  const std::size_t length = frame.to_bytes(bytes_);
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  pcap_pkthdr header{};
  header.ts.tv_sec = now.tv_sec;
  header.ts.tv_usec = now.tv_nsec;  // nanoseconds, by the precision of the handle
  header.caplen = static_cast<bpf_u_int32>(length);
  header.len = header.caplen;
  pcap_dump(reinterpret_cast<u_char*>(dumper_), &header, bytes_.data());
  dirty_ = true;
}

void PcapTap::flush() {
  if (dirty_) pcap_dump_flush(dumper_);
  dirty_ = false;
}

}  // namespace cepheus::live
