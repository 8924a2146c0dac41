#include "pmpi/parameters.h"

#include <dlfcn.h>

#include <cctype>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string_view>
#include <variant>

#include "collectives/core/parameters.h"

namespace cepheus::pmpi {

using namespace coll;

namespace {

// CEPHEUS_VERBOSE is the emulated NIC's.
constexpr const char* kVerbose = "mpi_verbose";

// The values of a setting that has names for them, from 0 on.
using Names = std::initializer_list<std::string_view>;

struct Setting {
  const char* name;
  std::variant<int*, unsigned long long*, const char**> storage;
  Names names = {};
};

template <typename Number>
bool read(std::string_view text, Names names, Number& out) {
  Number value = 0;
  for (const std::string_view name : names) {
    if (text == name) {
      out = value;
      return true;
    }
    ++value;
  }
  if (names.size() > 0) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  out = value;
  return true;
}

bool read(std::string_view text, Names, const char*& out) {
  out = text.data();  // the environment's, which ends in a zero
  return true;
}

void read_one(const Setting& setting) {
  const std::string variable = variable_of(setting.name);
  const char* const text = getenv(variable.c_str());
  if (text == nullptr || *text == '\0') return;
  if (std::visit([&](auto* storage) { return read(text, setting.names, *storage); },
                 setting.storage))
    return;
  std::string expected;
  for (const std::string_view name : setting.names)
    expected.append(expected.empty() ? "one of " : ", ").append(name);
  fprintf(stderr, "cepheus: %s=%s is not %s; the default holds\n", variable.c_str(), text,
          expected.empty() ? "a number" : expected.c_str());
}

// For rc_mcast, which lies in the directory beside it.
std::string own_directory() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&own_directory), &info) == 0 || info.dli_fname == nullptr)
    return ".";
  char* const resolved = realpath(info.dli_fname, nullptr);
  const std::string path = resolved != nullptr ? resolved : info.dli_fname;
  free(resolved);
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

}  // namespace

std::string variable_of(const char* name) {
  std::string variable = "CEPHEUS_";
  for (; *name != '\0'; ++name)
    variable += static_cast<char>(std::toupper(static_cast<unsigned char>(*name)));
  return variable;
}

void read_parameters() {
  Parameters& p = parameters();
  static const std::string directory = own_directory();
  p.component_directory = directory.c_str();
  static const std::initializer_list<Setting> settings = {
      {kVerbose, &p.verbose},
      {"mode", &p.mode, {"off", "try", "require"}},
      {"min_members", &p.min_members},
      {"eager_limit", &p.eager_limit},
      {"eager_message", &p.eager_message},
      {"register_timeout_ms", &p.register_timeout_ms},
      {"watchdog_ms", &p.watchdog_ms},
      {"safeguard_threshold", &p.safeguard_threshold},
      {"safeguard_samples", &p.safeguard_samples},
      {"ranks_per_host", &p.ranks_per_host},
      {"carrier", &p.carrier, {"auto", "ucx", "direct"}},
      {"set_up_after", &p.set_up_after},
      {"set_up_bytes", &p.set_up_bytes},
      {"mrp_port", &p.mrp_port},
      {"max_eager_memory", &p.max_eager_memory},
      {"device", &p.device},
      {"mcst_pool", &p.mcst_pool},
      {"uct_library", &p.uct_library},
  };
  for (const Setting& each : settings) read_one(each);
}

}  // namespace cepheus::pmpi
