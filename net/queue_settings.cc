// A table turns its feature on; sizes that are absent stay 0, which means "by the link's rate". A
// written 0 is therefore refused. ECN and PFC need a link with a rate, and an ECN queue must hold
// kmax bytes. to_text() writes only what differs from the default.
#include "net/queue_settings.h"

#include "net/units.h"

namespace cepheus::net {
namespace {

// "true", or "{ key = value, ... }" if a value differs from the default.
class InlineTable {
 public:
  void add(const std::string& key, const std::string& value) {
    all_ += (all_.empty() ? "" : ", ") + key + " = " + value;
  }
  void add_bytes(const std::string& key, wire::Bytes value) {
    if (value != 0) add(key, "\"" + bytes_to_text(value) + "\"");
  }
  std::string text() const { return all_.empty() ? "true" : "{ " + all_ + " }"; }

 private:
  std::string all_;
};

// 0: derived from the link.
void refuse_zero(const TomlTable& in, const char* key, const char* usual, wire::Bytes value) {
  if (!in.has(key) || value != 0) return;
  in.error(key, std::string(key) + " is 0; write " + key + " = \"" + usual + "\", or leave it out");
}

}  // namespace

void read_ecn(TomlErrors& errors, const TomlTable& link, const std::string& label, EcnConfig& ecn) {
  if (!link.has("ecn")) return;
  ecn = {};
  if (link.read_switch("ecn", ecn.on)) return;
  const toml::table* const table = link.table("ecn");
  if (table == nullptr) return;
  ecn.on = true;
  const TomlTable in(errors, *table, "ecn of " + label, {"kmin", "kmax", "pmax"});
  in.read_bytes("kmin", ecn.kmin);
  in.read_bytes("kmax", ecn.kmax);
  in.read_probability("pmax", ecn.pmax);
  refuse_zero(in, "kmin", "50KB", ecn.kmin);
  refuse_zero(in, "kmax", "500KB", ecn.kmax);
}

std::string problem_of(const EcnConfig& ecn, wire::BitRate rate, wire::Bytes queue) {
  if (!ecn.on) return {};
  if (rate.is_unlimited()) {
    return "ecn marks packets that wait for a link's rate, and this link has none; write rate = "
           "\"10Gbps\" "
           "beside it, or ecn = false";
  }
  const EcnConfig full = ecn.for_rate(rate);
  if (full.kmin > full.kmax) {
    return "ecn: kmin = \"" + bytes_to_text(full.kmin) + "\" is above kmax = \"" +
           bytes_to_text(full.kmax) + "\"; write the smaller one as kmin";
  }
  if (full.kmax > queue) {
    return "ecn: the queue is full before it marks everything, which it does from kmax = \"" +
           bytes_to_text(full.kmax) + "\"; write a smaller kmax, or queue = \"" +
           bytes_to_text(2 * full.kmax) + "\"";
  }
  return {};
}

std::string to_text(const EcnConfig& ecn) {
  if (!ecn.on) return "false";
  InlineTable table;
  table.add_bytes("kmin", ecn.kmin);
  table.add_bytes("kmax", ecn.kmax);
  if (ecn.pmax != EcnConfig::kUsualPmax) table.add("pmax", number_to_text(ecn.pmax));
  return table.text();
}

void read_pfc(TomlErrors& errors, const TomlTable& link, const std::string& label, PfcConfig& pfc) {
  if (!link.has("pfc")) return;
  pfc = {};
  if (link.read_switch("pfc", pfc.on)) return;
  const toml::table* const table = link.table("pfc");
  if (table == nullptr) return;
  pfc.on = true;
  const TomlTable in(errors, *table, "pfc of " + label, {"headroom"});
  in.read_bytes("headroom", pfc.headroom);
  refuse_zero(in, "headroom", "40KB", pfc.headroom);
}

std::string problem_of(const PfcConfig& pfc, wire::BitRate rate) {
  if (!pfc.on || !rate.is_unlimited()) return {};
  return "pfc pauses packets that wait for a link's rate, and this link has none; write rate = "
         "\"10Gbps\" "
         "beside it, or pfc = false";
}

std::string to_text(const PfcConfig& pfc) {
  if (!pfc.on) return "false";
  InlineTable table;
  table.add_bytes("headroom", pfc.headroom);
  return table.text();
}

void read_buffer(const TomlTable& in, BufferConfig& buffer) {
  in.read_bytes("buffer", buffer.bytes);
  refuse_zero(in, "buffer", "32MiB", buffer.bytes);
  in.read_bytes("buffer_reserve", buffer.reserve);
  if (in.has("group_halt") && !in.read_switch("group_halt", buffer.group_halt)) {
    in.error("group_halt", "group_halt is neither true nor false; write group_halt = true");
  }
  in.read_probability("buffer_share", buffer.share);
  if (buffer.share <= 0) {
    in.error("buffer_share", "buffer_share must be above 0; write buffer_share = 0.125");
  }
}

}  // namespace cepheus::net
