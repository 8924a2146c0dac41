// <mcast/mcast.h>: reports of calls.
#include <mcast/mcast.h>

#include "libmcast/call_report.h"
#include "libmcast/guarded.h"

using namespace cepheus::mcast;

namespace {

ReportScope* scope_of(mcast_report_h h) { return reinterpret_cast<ReportScope*>(h); }

}  // namespace

mcast_status_t mcast_report_open(const char* name, unsigned rank, unsigned ranks,
                                 mcast_report_h* out) {
  if (name == nullptr || out == nullptr) return invalid("a report needs a name and a place");
  return guarded([&] {
    ReportFile& file = ReportFile::instance();
    if (const auto opened = file.open(); !opened) return set_last_error(opened.error());
    *out = reinterpret_cast<mcast_report_h>(new ReportScope(file, name, rank, ranks));
    return MCAST_OK;
  });
}

void mcast_report_call(mcast_report_h report, const char* path, const char* reason) {
  if (report != nullptr && path != nullptr && reason != nullptr)
    scope_of(report)->count(path, reason);
}

uint64_t mcast_report_begin(void) {
  return static_cast<uint64_t>(ReportFile::instance().begin_call());
}

void mcast_report_timed_call(mcast_report_h report, const char* path, const char* reason,
                             uint64_t begin_ns, uint64_t bytes, unsigned root) {
  mcast_report_call(report, path, reason);
  if (begin_ns == 0 || report == nullptr || path == nullptr || reason == nullptr) return;
  scope_of(report)->keep(path, reason, static_cast<std::int64_t>(begin_ns), bytes, root);
}

void mcast_report_close(mcast_report_h report) { delete scope_of(report); }
