// The data of `cepheusctl explain` about one communicator: calls by path and reason, and the path
// of each size class.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "collectives/core/route.h"
#include "collectives/host_mpi.h"
#include "collectives/reports/report_file.h"
#include "collectives/safeguard.h"

namespace cepheus::coll {

class CallReport {
 public:
  struct Times {
    std::int64_t began;  // ReportFile::begin_call()'s
    std::size_t bytes;
    int root;
  };

  // Counts a call on `comm`, which ends now. The first one opens the report, when programs have
  // named their communicators. With a full file system nothing is counted, and nothing else
  // changes.
  void count(const host::Communicator& comm, Route route, bool blocking, const char* reason,
             const Times& times) {
    if (!tried_) open(comm);
    if (!scope_) return;
    const char* const path = text_of(route, blocking);
    scope_->count(path, reason);
    if (times.began != 0)
      scope_->keep(path, reason, times.began, times.bytes, static_cast<std::uint32_t>(times.root));
  }

  // The way of a size class of `comm` from now on.
  void judge(const host::Communicator& comm, const Safeguard::Judgement& judgement) {
    if (!tried_) open(comm);
    if (!scope_) return;
    scope_->choose(to_text(judgement.sizes).c_str(), judgement.other_way(),
                   {judgement.way == Way::kMulticast, judgement.comparisons,
                    static_cast<std::uint64_t>(judgement.multicast_ns),
                    static_cast<std::uint64_t>(judgement.saved_ns)});
  }

 private:
  static const char* text_of(Route route, bool blocking) {
    const auto texts = [](const std::string& before) {
      return std::array{before + "eager lane", before + "bulk lane", before + "hosts",
                        before + "point to point", before + host::implementation()};
    };
    static const auto kBlocking = texts(""), kOthers = texts("ibcast: ");
    return (blocking ? kBlocking : kOthers)[static_cast<std::size_t>(route)].c_str();
  }

  void open(const host::Communicator& comm) {
    tried_ = true;
    const int rank = host::rank(comm);
    ReportFile& file = ReportFile::instance();
    if (const auto opened = file.open(); opened) {
      scope_.emplace(file, host::name(comm).c_str(), static_cast<unsigned>(rank),
                     static_cast<unsigned>(host::size(comm)));
    } else if (rank == 0) {
      log_reason(opened.error().text.c_str());
    }
  }
  static void log_reason(const char* why) {
    static std::atomic<bool> printed{false};
    if (printed.exchange(true)) return;
    host::log(1, "cepheus: cepheusctl explain won't show this process: %s", why);
  }

  bool tried_ = false;
  std::optional<ReportScope> scope_;
};

}  // namespace cepheus::coll
