// An ordinary reliable connection, between the writer and one replica: RDMA READs, and WRITEs of
// copies.
#pragma once

#include <memory>

#include "replica/control/messages.h"
#include "replica/rdma/rdma_port.h"

namespace cepheus::replica {

class RcConnection {
 public:
  // For `depth` work requests at once; 0: only the other end posts.
  static wire::Result<std::unique_ptr<RcConnection>> create(RdmaPort& port, unsigned depth);

  RcName name() const { return name_; }
  wire::Result<void> connect(const RcName& peer);

  struct Piece {
    void* address;  // registered, under `lkey`
    std::size_t length;
    std::uint32_t lkey;
    std::uint64_t remote;  // the other end's address, under `rkey`
    std::uint32_t rkey;
  };
  // False: the connection has failed. At most `depth` at once.
  bool post(std::uint64_t id, ibv_wr_opcode opcode, const Piece& piece);

 private:
  explicit RcConnection(RdmaPort& port) : port_(port) {}

  RdmaPort& port_;
  struct Deleter {
    void operator()(ibv_qp* p) const { ibv_destroy_qp(p); }
  };
  std::unique_ptr<ibv_qp, Deleter> pair_;
  RcName name_;
};

}  // namespace cepheus::replica
