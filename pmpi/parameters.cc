// An unset or empty variable leaves the default. A setting with named choices takes these names
// only. A number must be the whole text, without a unit or sign beyond its type's. Settings of Open
// MPI alone are not read.
#include "pmpi/parameters.h"

#include <cctype>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "collectives/core/parameters.h"

namespace cepheus::pmpi {

using namespace coll;

namespace {

using Names = std::vector<const char*>;

template <typename Number>
bool read(std::string_view text, const Names& names, Number& out) {
  Number value = 0;
  for (const char* name : names) {
    if (text == name) {
      out = value;
      return true;
    }
    ++value;
  }
  if (!names.empty()) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  out = value;
  return true;
}

bool read(std::string_view text, const Names&, const char*& out) {
  out = text.data();  // the environment's, which ends in a zero
  return true;
}

void read_one(const Setting& setting) {
  const std::string variable = variable_of(setting.name);
  const char* const text = getenv(variable.c_str());
  if (text == nullptr || *text == '\0') return;
  bool is_read = false;
  const std::string error = take(setting, [&] {
    is_read = std::visit([&](auto* storage) { return read(text, setting.choices, *storage); },
                         setting.storage);
  });
  if (!error.empty()) fprintf(stderr, "cepheus: %s=%s\n", variable.c_str(), error.c_str());
  if (is_read) return;
  std::string expected;
  for (const char* name : setting.choices)
    expected.append(expected.empty() ? "one of " : ", ").append(name);
  fprintf(stderr, "cepheus: %s=%s is not %s; the default holds\n", variable.c_str(), text,
          expected.empty() ? "a number" : expected.c_str());
}

}  // namespace

std::string variable_of(const char* name) {
  // CEPHEUS_VERBOSE is the emulated NIC's.
  std::string variable = std::string_view(name) == "verbose" ? "CEPHEUS_MPI_" : "CEPHEUS_";
  for (; *name != '\0'; ++name)
    variable += static_cast<char>(std::toupper(static_cast<unsigned char>(*name)));
  return variable;
}

void read_parameters() {
  for (const Setting& each : settings()) {
    if (!each.is_open_mpis) read_one(each);
  }
}

}  // namespace cepheus::pmpi
