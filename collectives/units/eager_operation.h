// A small broadcast: copied by the root into a send buffer, by the others out of a posted one.
#pragma once

#include <memory>

#include "collectives/group/messages.h"
#include "collectives/group/session.h"
#include "collectives/units/operation.h"

namespace cepheus::coll {

class EagerOperation final : public Operation {
 public:
  using Operation::begin;
  Code serve(int, uint64_t) override { return Code::kDone; }
  void finish() override;

 private:
  Code run() override { return call_.is_root() ? send() : receive(); }
  Code send();
  Code receive();
  Code take_arrived();
  Code repair(Actions& out) override;
  Code take(const void* data, size_t length);
  Code mismatch(const EagerHeader& header) const;
  size_t message_bytes() const { return sizeof(EagerHeader) + call_.length; }

  std::unique_ptr<std::byte[]> repair_;  // being received; before the request that fills it
  Messages messages_;
};

}  // namespace cepheus::coll
