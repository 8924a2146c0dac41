// Settings of the queues before links, as a topology file has them.
#pragma once

#include <string>

#include "net/ecn.h"
#include "net/link.h"
#include "net/shared_buffer.h"
#include "net/toml_table.h"

namespace cepheus::net {

// ecn = true, false, or a table with some of kmin, kmax and pmax; the link's rate determines the
// others. Leaves `ecn` alone if the key is absent. `label` names the link in errors.
void read_ecn(TomlErrors& errors, const TomlTable& link, const std::string& label, EcnConfig& ecn);
// The error in `ecn` on a link with this rate and this queue limit, or nothing.
std::string problem_of(const EcnConfig& ecn, wire::BitRate rate, wire::Bytes queue);
// The text that read_ecn() reads.
std::string to_text(const EcnConfig& ecn);

// pfc = true, false, or a table with headroom; the link's rate and delay determine it otherwise.
void read_pfc(TomlErrors& errors, const TomlTable& link, const std::string& label, PfcConfig& pfc);
std::string problem_of(const PfcConfig& pfc, wire::BitRate rate);
std::string to_text(const PfcConfig& pfc);

// Reads buffer, buffer_share, buffer_reserve and group_halt of a switch.
void read_buffer(const TomlTable& in, BufferConfig& buffer);

}  // namespace cepheus::net
