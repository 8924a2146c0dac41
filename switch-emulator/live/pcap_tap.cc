#include "switch-emulator/live/pcap_tap.h"

#include <pcap/pcap.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>

namespace cepheus::live {
namespace {

constexpr int kSnapLength = 1 << 17;  // longer than any frame

struct RecordHead {  // in the file, before each frame (pcap-savefile(5))
  std::uint32_t seconds, nanoseconds, length, original_length;
};

// Where the last whole frame of the file ends. Frames begin at `from`.
std::int64_t whole_frames(const std::string& path, std::int64_t from) {
  std::ifstream file(path, std::ios::binary);
  const std::int64_t size = file.seekg(0, std::ios::end).tellg();
  RecordHead head{};
  while (file.seekg(from).read(reinterpret_cast<char*>(&head), sizeof head)) {
    const std::int64_t end = from + std::int64_t{sizeof head} + head.length;
    if (end > size) break;
    from = end;
  }
  return from;
}

}  // namespace

wire::Result<std::unique_ptr<PcapTap>> PcapTap::create(
    const std::string& path, std::function<void(const std::string&)> warn) {
  std::unique_ptr<PcapTap> tap(new PcapTap);
  tap->path_ = path;
  tap->warn_ = std::move(warn);
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
  tap->dirty_ = true;
  tap->flush();  // readable, if empty, from now on
  return tap;
}

PcapTap::~PcapTap() {
  flush();
  if (dumper_ != nullptr) pcap_dump_close(dumper_);
  if (handle_ != nullptr) pcap_close(handle_);
}

bool PcapTap::is_intact() const { return std::ferror(pcap_dump_file(dumper_)) == 0; }

void PcapTap::give_up(int error) {
  pcap_dump_close(dumper_);  // may write more, in part
  dumper_ = nullptr;
  const bool is_cut = ::truncate(path_.c_str(), whole_frames(path_, flushed_)) == 0;
  warn_("the capture " + path_ + " has ended: " + std::strerror(error) +
        (is_cut ? "; what it holds is whole" : "; its last frame is torn"));
}

void PcapTap::write(const wire::Frame& frame) {
  if (dumper_ == nullptr) return;
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
  if (!is_intact()) give_up(errno);
}

void PcapTap::flush() {
  if (dumper_ == nullptr || !dirty_) return;
  dirty_ = false;
  if (pcap_dump_flush(dumper_) != 0 || !is_intact()) return give_up(errno);
  flushed_ = pcap_dump_ftell64(dumper_);
}

}  // namespace cepheus::live
