// The data of `cepheusctl explain` about one communicator: calls by path and reason, and the path
// of each size class.
#pragma once

#include <cstdint>
#include <memory>

#include "collectives/core/code.h"
#include "collectives/core/collective.h"
#include "collectives/host_mpi.h"
#include "collectives/safeguard.h"

namespace cepheus::coll {

class ReportScope;

class CallReport {
 public:
  struct Kind {
    Collective collective;
    bool blocking;
  };
  struct Times {
    std::int64_t began;  // begin_call()'s
    std::size_t bytes;
    int root;
  };

  CallReport();
  ~CallReport();
  // A call begins: see ReportFile.
  static std::int64_t begin_call();
  // Counts a call on `comm`, which ends now. The first one opens the report, when programs have
  // named their communicators. With a full file system nothing is counted, and nothing else
  // changes.
  void count(const host::Communicator& comm, const Kind& kind, Route route, const char* reason,
             const Times& times);
  // The way of a size class of `comm` from now on.
  void judge(const host::Communicator& comm, const Safeguard::Judgement& judgement);

 private:
  bool open(const host::Communicator& comm);

  bool tried_ = false;
  std::unique_ptr<ReportScope> scope_;
};

}  // namespace cepheus::coll
