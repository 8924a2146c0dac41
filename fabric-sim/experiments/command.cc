// Order: run the experiment, print its headline, the table and the unusual settings, then write the
// JSON file. An exception of the experiment ends it with code 1, and nothing is printed or written.
// Output that was lost or a file that can't be written gives code 1, too, after the table.
#include "fabric-sim/experiments/command.h"

#include <exception>
#include <fstream>
#include <iostream>

#include "fabric-sim/experiments/settings.h"

namespace cepheus::sim {
namespace {

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kUsage = 2;

void list() {
  for (const Experiment& e : experiments()) {
    std::cout << e.name << "\n    " << e.shows << "\n    " << e.figure << "; takes " << e.cost
              << '\n';
  }
}

bool save(const std::string& path, const Report& report) {
  if (path.empty()) return true;
  std::ofstream file(path);
  report.write_json(file);
  file.close();
  if (file) return true;
  std::cerr << "cepheus-sim: " << path << " can't be written; check directory and disk\n";
  return false;
}

int complain_about(const std::string& name) {
  std::cerr << "cepheus-sim: there is no experiment '" << name << "'; the experiments are";
  for (const Experiment& e : experiments()) std::cerr << ' ' << e.name;
  std::cerr << '\n';
  return kUsage;
}

}  // namespace

int run_experiment(const ExperimentCommand& command) {
  if (command.list) {
    list();
    return kDone;
  }
  const Experiment* const e = find_experiment(command.name);
  if (e == nullptr) return complain_about(command.name);
  Report report(command.name, [](const std::string& what) { std::cerr << what << std::endl; });
  const SettingsLog settings;
  try {
    e->run(command.options, report);
  } catch (const std::exception& failure) {
    std::cerr << "cepheus-sim: " << command.name << ": " << failure.what() << '\n';
    return kFailed;
  }
  std::cout << e->name << " (" << e->figure << ", simulated"
            << (command.options.quick ? ", quick" : "") << "): " << e->shows << "\n\n";
  report.write_headline(std::cout, e->headline, e->verdict);
  std::cout << '\n';
  report.write_table(std::cout, e->x);
  settings.write(std::cout);
  std::cout << "\ndocs/experiments/" << e->name << ".md describes the simulation\n";
  const bool saved = save(command.json, report);
  return saved && std::cout.flush() ? kDone : kFailed;
}

}  // namespace cepheus::sim
