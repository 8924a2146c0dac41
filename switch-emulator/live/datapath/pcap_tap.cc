// Frames pass libpcap's buffer, and are flushed after kMostUnflushed of them or when the fabric
// rests. On the first error the capture ends: the file is cut behind its last whole frame, by its
// descriptor, and `warn` gets the reason. Later frames are ignored. Source: pcap-savefile(5).
#include "switch-emulator/live/datapath/pcap_tap.h"

#include <pcap/pcap.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

namespace cepheus::live {

constexpr int kSnapLength = 1 << 17;  // longer than any frame

constexpr std::size_t kRecordHead = 16;       // in the file, before each frame (pcap-savefile(5))
constexpr std::size_t kMostUnflushed = 1024;  // frames

wire::Result<std::unique_ptr<PcapTap>> PcapTap::create(
    const std::string& path, std::function<void(const std::string&)> warn) {
  std::unique_ptr<PcapTap> tap(new PcapTap);
  tap->path_ = path;
  tap->warn_ = std::move(warn);
  tap->handle_ =
      pcap_open_dead_with_tstamp_precision(DLT_EN10MB, kSnapLength, PCAP_TSTAMP_PRECISION_NANO);
  if (tap->handle_ == nullptr) {
    return wire::unavailable("libpcap can't open a capture");
  }
  tap->dumper_ = pcap_dump_open(tap->handle_, path.c_str());
  if (tap->dumper_ == nullptr) {
    return wire::unavailable("can't write the capture " + path + ": " + pcap_geterr(tap->handle_));
  }
  tap->file_.reset(dup(fileno(pcap_dump_file(tap->dumper_))));
  tap->dirty_ = true;
  tap->flush();  // readable, if empty, from now on
  if (tap->dumper_ == nullptr) {
    return wire::unavailable("can't write the capture " + path);
  }
  return tap;
}

PcapTap::~PcapTap() {
  flush();
  if (dumper_ != nullptr) pcap_dump_close(dumper_);
  if (handle_ != nullptr) pcap_close(handle_);
}

bool PcapTap::is_intact() const { return std::ferror(pcap_dump_file(dumper_)) == 0; }

// By the descriptor: another file may have the name by now.
bool PcapTap::cut_behind_last_frame() {
  struct stat now {};
  if (fstat(file_.get(), &now) != 0 || !S_ISREG(now.st_mode)) return false;
  std::int64_t whole = flushed_;
  for (const std::int64_t end : ends_) {
    if (end <= now.st_size) whole = end;
  }
  return ftruncate(file_.get(), whole) == 0;
}

void PcapTap::give_up(int error) {
  pcap_dump_close(dumper_);  // may write more, in part
  dumper_ = nullptr;
  warn_("the capture " + path_ + " has ended: " + std::strerror(error) +
        (cut_behind_last_frame() ? "; its frames are whole" : "; its last frame may be torn"));
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
  const std::int64_t begin = ends_.empty() ? flushed_ : ends_.back();
  ends_.push_back(begin + static_cast<std::int64_t>(kRecordHead + length));
  if (!is_intact()) return give_up(errno);
  if (ends_.size() >= kMostUnflushed) flush();
}

void PcapTap::flush() {
  if (dumper_ == nullptr || !dirty_) return;
  dirty_ = false;
  if (pcap_dump_flush(dumper_) != 0 || !is_intact()) return give_up(errno);
  flushed_ = pcap_dump_ftell64(dumper_);
  ends_.clear();
}

}  // namespace cepheus::live
