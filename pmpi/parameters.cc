#include "pmpi/parameters.h"

#include <unistd.h>

#include <cctype>
#include <charconv>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "collectives/core/parameters.h"
#include "collectives/host_mpi.h"
#include "collectives/reports/report_file.h"
#include "pmpi/calls.h"

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

// --- What the ranks agree on.

using namespace coll;

static constexpr const char* kFailed = "a function of it failed";

Verdict agree(bool is_off, bool is_able) {
  enum { kOff, kNotOff, kAble, kSettings, kInverseSettings, kProcess, kTime, kFacts };
  int rank = 0, all[kFacts] = {};
  if (calls().Comm_rank(kCommWorld, &rank) != kSuccess) return {false, kFailed};
  const int settings = static_cast<int>(parameters().fingerprint());
  const int mine[kFacts] = {is_off ? rank : INT_MAX,
                            is_off ? INT_MAX : rank,
                            is_able ? 1 : 0,
                            settings,
                            ~settings,
                            rank == 0 ? getpid() : INT_MAX,
                            rank == 0 ? static_cast<int>(time(nullptr) % INT_MAX) : INT_MAX};
  if (calls().Allreduce(mine, all, kFacts, kInt, kMin, kCommWorld) != kSuccess)
    return {false, kFailed};
  // Hydra gives jobs no name.
  ReportFile::set_job(std::string(host::implementation()) + "-" + std::to_string(all[kProcess]) +
                      "-" + std::to_string(all[kTime]));
  const bool is_first = rank == 0;
  if (all[kOff] != INT_MAX) {
    if (is_first && all[kNotOff] != INT_MAX) {
      host::log(0, "cepheus: %s is off on rank %d, and not on rank %d: it is off on all ranks",
                host::parameter("mode").c_str(), all[kOff], all[kNotOff]);
    }
    return {true};
  }
  if (all[kAble] == 0) return {false, "another rank is not able to multicast", is_first};
  // The least and the greatest.
  if (all[kSettings] != ~all[kInverseSettings])
    return {false, host::parameter("*") + " differ among the ranks: give all ranks the same",
            is_first};
  return {};
}

}  // namespace cepheus::pmpi
