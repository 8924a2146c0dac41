// The extended interfaces: polling a queue field by field, posting by builder calls.
#pragma once

#include "nic-emulator/verbs/abi.h"

namespace cepheus::verbs {

class QueuePair;

ibv_cq_ex* create_extended_cq(ibv_context* context, ibv_cq_init_attr_ex* init);
ibv_qp* create_extended_qp(ibv_context* context, ibv_qp_init_attr_ex* init);
void set_extended_operations(QueuePair& qp);

}  // namespace cepheus::verbs
