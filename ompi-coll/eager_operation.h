// A small broadcast: copied by the root into a send buffer, by the others out of a posted one.
#pragma once

#include <memory>

#include "ompi-coll/messages.h"
#include "ompi-coll/operation.h"

namespace cepheus::coll {

class EagerOperation final : public Operation {
 public:
  EagerOperation(const Call& call, Session& session) : call_(call), session_(session) {}
  int progress(Actions& out) override;
  int serve(int to, uint64_t bytes) override;

 private:
  int send(Actions& out);
  int receive();
  int repair(Actions& out);
  int take(const void* data, size_t length);
  int finish(int rc, Actions& out);
  size_t message_bytes() const { return sizeof(EagerHeader) + call_.length; }

  Call call_;
  Session& session_;
  bool entered_ = false;
  std::unique_ptr<std::byte[]> repair_;  // being received; before the request that fills it
  Messages messages_;
};

}  // namespace cepheus::coll
