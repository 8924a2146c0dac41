// One screen of `cepheusctl top`: rates, lagging groups, drops and the other readings, in a given
// number of rows and columns.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace cepheus::tools {

struct TopScreen {
  std::size_t rows = 24, columns = 80;
  bool colour = false;
  bool by_name = false;    // links by name; otherwise those with most traffic first
  bool is_paused = false;  // shown in the footer
  std::size_t skip = 0;    // links scrolled away
};

// `view`: live::fabric_view(). At most this number of lines, none wider than the screen; the last
// one is the footer with the keys.
std::vector<std::string> top_frame(const nlohmann::json& view, const TopScreen& screen);

}  // namespace cepheus::tools
