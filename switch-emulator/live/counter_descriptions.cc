#include "switch-emulator/live/counter_descriptions.h"

#include <nlohmann/json.hpp>

#include "switch-emulator/live/readings.h"
#include "switch-emulator/live/text_table.h"

namespace cepheus::live {

std::string describe_counters(bool colour) {
  const std::vector<TextTable::Column> columns = {{"READING"}, {"KIND"}, {"UNIT"}, {"WHAT IT IS"}};
  std::string text;
  TextTable table(columns);
  const auto& all = all_readings();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const ReadingInfo& reading = *all[i];
    table.add({reading.full_name, reading.kind == Kind::kCounter ? "counter" : "gauge",
               std::string(reading.unit()), reading.says});
    if (i + 1 < all.size() && all[i + 1]->scope == reading.scope) continue;
    text += styled(std::string(reading.scope), Style::kTitle, colour) + "\n";
    text += table.to_text(colour);
    table = TextTable(columns);
  }
  return text;
}

nlohmann::json counter_descriptions() {
  nlohmann::json all = nlohmann::json::object();
  for (const ReadingInfo* reading : all_readings()) all[reading->full_name] = reading->says;
  return all;
}

}  // namespace cepheus::live
