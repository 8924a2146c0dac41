#include "nic-emulator/engine/ud_responder.h"

#include <array>

namespace cepheus::rnic {

bool UdResponder::on_datagram(const wire::RoceHeaders& headers, std::span<const std::uint8_t> data,
                              NicOutput& out) {
  if (headers.deth.qkey != qp_.attr.qkey) {
    counters_.add(Counter::kRxDropQkey);
    return true;
  }
  if (data.size() > qp_.attr.path_mtu) {
    counters_.add(Counter::kRxDropLength);
    return true;
  }
  if (!receives_.hold(out)) {
    counters_.add(Counter::kRxDropNoReceive);
    return true;
  }
  if (kGrhBytes + data.size() > receives_.room()) {
    counters_.add(Counter::kRxDropLength);
    return true;
  }
  std::array<std::uint8_t, kGrhBytes> grh{};
  headers.ip.emit(std::span(grh).last<wire::Ipv4Header::kSize>());
  if (!receives_.place(0, grh) || !receives_.place(kGrhBytes, data)) {
    receives_.complete(WcStatus::kLocalProtection, out);
    return false;
  }
  const wire::OpcodeInfo& info = opcode_info(headers.bth.opcode);
  Completion& c = receives_.complete(WcStatus::kSuccess, out);
  c.byte_len = static_cast<std::uint32_t>(kGrhBytes + data.size());
  c.solicited = headers.bth.solicited;
  c.has_imm = info.imm;
  c.imm = info.imm ? headers.imm.value : 0;
  c.has_grh = true;
  c.source_qpn = headers.deth.source_qp;
  return true;
}

}  // namespace cepheus::rnic
