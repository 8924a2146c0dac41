// Results of collectives as MPI's error classes, and back.
#pragma once

#include "collectives/core/code.h"
#include "pmpi/calls.h"

namespace cepheus::pmpi {

struct CodePair {
  int theirs;
  coll::Code ours;
};
inline constexpr CodePair kCodes[] = {
    {kSuccess, coll::Code::kDone},          {kErrOther, coll::Code::kFailed},
    {kErrNoMem, coll::Code::kNoMemory},     {kErrTruncate, coll::Code::kTruncated},
    {kErrCount, coll::Code::kCountsDiffer}, {kErrRoot, coll::Code::kRootsDiffer},
    {kErrTruncate, coll::Code::kEmpty}};

// By its class: MPICH's error codes use the bits of Code's own values.
inline coll::Code to_code(int error) {
  int theirs = error;
  if (error != kSuccess && calls().Error_class(error, &theirs) != kSuccess) theirs = kErrOther;
  for (const CodePair& each : kCodes) {
    if (each.theirs == theirs) return each.ours;
  }
  return static_cast<coll::Code>(theirs);
}

inline int from_code(coll::Code code) {
  for (const CodePair& each : kCodes) {
    if (each.ours == code) return each.theirs;
  }
  return static_cast<int>(code);
}

}  // namespace cepheus::pmpi
