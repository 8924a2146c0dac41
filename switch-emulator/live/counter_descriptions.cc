#include "switch-emulator/live/counter_descriptions.h"

#include <nlohmann/json.hpp>

#include "switch-emulator/engine/counters.h"
#include "switch-emulator/live/link_counters.h"
#include "switch-emulator/live/text_table.h"
#include "switch-emulator/ports/access_port.h"

namespace cepheus::live {
namespace {

// Calls f(where they are counted, text) for each counter, in the order of the tables.
template <typename F>
void for_each_counter(F&& f) {
  for (const wire::CounterText& text : fabric::kCounterTexts) f("switches and their ports", text);
  for (const wire::CounterText& text : fabric::kPortCounterTexts) f("ports of hosts", text);
  for (const auto& field : kLinkSideDrops) f("links", field.text);
  for (const auto& field : kQueueReadings) f("links", field.text);
  for (const auto& field : kLinkCounters) f("links", field.text);
}

}  // namespace

std::string describe_counters(bool colour) {
  std::string all, at;
  TextTable table({{"COUNTER"}, {"WHAT IT COUNTS"}});
  const auto finish = [&] {
    if (!at.empty()) all += styled(at, Style::kTitle, colour) + "\n" + table.to_text(colour);
    table = TextTable({{"COUNTER"}, {"WHAT IT COUNTS"}});
  };
  for_each_counter([&](const char* where, const wire::CounterText& text) {
    if (at != where) finish();
    at = where;
    table.add({std::string(text.name), std::string(text.says)});
  });
  finish();
  return all;
}

nlohmann::json counter_descriptions() {
  nlohmann::json all = nlohmann::json::object();
  for_each_counter([&](const char*, const wire::CounterText& text) { all[text.name] = text.says; });
  return all;
}

}  // namespace cepheus::live
