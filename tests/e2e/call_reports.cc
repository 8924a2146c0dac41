// Counts a rank's calls, for reports_test.py: functions of a shared library.
#include "collectives/reports/report_file.h"

using cepheus::coll::ReportFile;
using cepheus::coll::ReportScope;

extern "C" {

__attribute__((visibility("default"))) ReportScope* report_open(const char* communicator,
                                                                const char** why) {
  ReportFile& file = ReportFile::instance();
  static thread_local std::string reason;
  if (const auto opened = file.open(); !opened) {
    reason = opened.error().text;
    *why = reason.c_str();
    return nullptr;
  }
  return new ReportScope(file, communicator, 0, 2);
}

__attribute__((visibility("default"))) void report_call(ReportScope* scope, const char* path,
                                                        const char* reason) {
  scope->count(path, reason);
}

}  // extern "C"
