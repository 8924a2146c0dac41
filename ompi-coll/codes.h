// Results of collectives as Open MPI's codes, and back.
#pragma once

#include "collectives/core/code.h"
#include "ompi-coll/ompi_headers.h"

namespace cepheus::ompi {

constexpr coll::Code to_code(int rc) {
  switch (rc) {
    case OMPI_SUCCESS:
      return coll::Code::kDone;
    case OMPI_ERROR:
      return coll::Code::kFailed;
    case OMPI_ERR_OUT_OF_RESOURCE:
      return coll::Code::kNoMemory;
    case MPI_ERR_TRUNCATE:
      return coll::Code::kTruncated;
    case MPI_ERR_COUNT:
      return coll::Code::kCountsDiffer;
    case MPI_ERR_ROOT:
      return coll::Code::kRootsDiffer;
    default:
      return static_cast<coll::Code>(rc);
  }
}

constexpr int from_code(coll::Code code) {
  switch (code) {
    case coll::Code::kDone:
      return OMPI_SUCCESS;
    case coll::Code::kPending:
      return OMPI_ERR_WOULD_BLOCK;
    case coll::Code::kNotServed:
      return OMPI_ERR_NOT_AVAILABLE;
    case coll::Code::kFailed:
      return OMPI_ERROR;
    case coll::Code::kNoMemory:
      return OMPI_ERR_OUT_OF_RESOURCE;
    case coll::Code::kTruncated:
    case coll::Code::kEmpty:
      return MPI_ERR_TRUNCATE;
    case coll::Code::kCountsDiffer:
      return MPI_ERR_COUNT;
    case coll::Code::kRootsDiffer:
      return MPI_ERR_ROOT;
  }
  return static_cast<int>(code);
}

}  // namespace cepheus::ompi
