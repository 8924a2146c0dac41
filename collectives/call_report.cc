// The first counted call of a communicator tries to open the report, once. If that fails, nothing
// is counted, and rank 0 logs the reason once in the process. Texts of ways are made once, so
// counting allocates nothing. Times are kept only for calls that began while a recording was on.
#include "collectives/call_report.h"

#include <array>
#include <atomic>
#include <string>

#include "collectives/reports/report_file.h"

namespace cepheus::coll {

namespace {

// "ibcast: eager lane", "allreduce: network".
const char* text_of(const CallReport::Kind& kind, Route route) {
  using Texts = std::array<std::string, kRoutes>;
  static const auto kTexts = [] {
    std::array<std::array<Texts, 2>, kCollectives> all;
    for (std::size_t i = 0; i < kCollectives; ++i) {
      const std::string collective = name(static_cast<Collective>(i));
      for (const bool blocking : {false, true}) {
        const bool is_usual = blocking && i == static_cast<std::size_t>(Collective::kBcast);
        const std::string before = is_usual ? "" : (blocking ? "" : "i") + collective + ": ";
        all[i][blocking ? 1 : 0] = {before + "eager lane",
                                    before + "bulk lane",
                                    before + "hosts",
                                    before + "point to point",
                                    before + host::implementation(),
                                    before + "network",
                                    before + "messages"};
      }
    }
    return all;
  }();
  return kTexts[static_cast<std::size_t>(kind.collective)][kind.blocking ? 1 : 0]
               [static_cast<std::size_t>(route)]
                   .c_str();
}

void log_reason(const char* why) {
  static std::atomic<bool> printed{false};
  if (printed.exchange(true)) return;
  host::log(1, "cepheus: cepheusctl explain won't show this process: %s", why);
}

}  // namespace

CallReport::CallReport() = default;
CallReport::~CallReport() = default;

std::int64_t CallReport::begin_call() { return ReportFile::instance().begin_call(); }

void CallReport::count(const host::Communicator& comm, const Kind& kind, Route route,
                       const char* reason, const Times& times) {
  if (!open(comm)) return;
  const char* const path = text_of(kind, route);
  scope_->count(path, reason);
  if (times.began != 0)
    scope_->keep(path, reason, times.began, times.bytes, static_cast<std::uint32_t>(times.root));
}

void CallReport::judge(const host::Communicator& comm, const Safeguard::Judgement& judgement) {
  if (!open(comm)) return;
  scope_->choose(to_text(judgement.sizes).c_str(), {judgement.network(), judgement.other_way()},
                 {judgement.way == Way::kNetwork, judgement.comparisons,
                  static_cast<std::uint64_t>(judgement.network_ns),
                  static_cast<std::uint64_t>(judgement.other_ns)});
}

bool CallReport::open(const host::Communicator& comm) {
  if (tried_) return scope_ != nullptr;
  tried_ = true;
  const int rank = host::rank(comm);
  ReportFile& file = ReportFile::instance();
  if (const auto opened = file.open(); opened) {
    scope_ =
        std::make_unique<ReportScope>(file, host::name(comm).c_str(), static_cast<unsigned>(rank),
                                      static_cast<unsigned>(host::size(comm)));
  } else if (rank == 0) {
    log_reason(opened.error().text.c_str());
  }
  return scope_ != nullptr;
}

}  // namespace cepheus::coll
