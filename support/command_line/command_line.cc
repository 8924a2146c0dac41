// Wrong usage prints three lines: what is wrong at the innermost subcommand, its example, and the
// command for help. An unknown option or command is named even if CLI11 reports a missing one. All
// failures of parsing give exit code 2.
#include "support/command_line/command_line.h"

#include "support/command_line/process.h"

namespace cepheus::command_line {
namespace {

constexpr int kWrongUsage = 2;

// The innermost subcommand that was parsed, with its full name.
struct Place {
  const CLI::App* app;
  std::string name;
  std::string example;  // of the innermost one that has an example
};

Place place_of(const CLI::App& program) {
  Place place{&program, program.get_name(), ""};
  while (true) {
    const std::string footer = place.app->get_footer();
    if (!footer.empty()) place.example = footer.substr(0, footer.find('\n'));
    const auto parsed = place.app->get_subcommands();
    if (parsed.empty()) return place;
    place.app = parsed.front();
    place.name += " " + place.app->get_name();
  }
}

std::string commands_of(const CLI::App& app) {
  std::string names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    names += (names.empty() ? "" : ", ") + sub->get_name();
  }
  return names;
}

std::string reason(const CLI::App& program, const CLI::App& at, const CLI::Error& error) {
  const auto unknown = program.remaining(true);
  const bool lacks_command = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr &&
                             at.get_require_subcommand_min() > 0 && at.get_subcommands().empty();
  if (lacks_command && unknown.empty()) return "give a command: " + commands_of(at);
  if (unknown.empty()) return error.what();
  if (unknown.front().starts_with("-")) return "there is no option '" + unknown.front() + "'";
  if (at.get_subcommands().empty() && !commands_of(at).empty()) {
    return "there is no command '" + unknown.front() + "'; the commands are " + commands_of(at);
  }
  return "'" + unknown.front() + "' was not expected";
}

std::string wrong_usage(const CLI::App* program, const CLI::Error& error) {
  const Place place = place_of(*program);
  std::string text = place.name + ": " + reason(*program, *place.app, error) + "\n";
  if (!place.example.empty()) text += place.example + "\n";
  return text + "Run '" + place.name + " --help' for all options.\n";
}

}  // namespace

void set_up(CLI::App& app, const std::string& name, const std::string& version) {
  prepare_process();
  app.name(name);
  app.set_help_flag("-h,--help", "print this help and exit");
  app.set_version_flag("--version", name + " " + version, "print the version and exit");
  app.failure_message(wrong_usage);
}

void set_example(CLI::App& app, const std::string& command, const std::string& notes) {
  app.footer("Example: " + command + (notes.empty() ? "" : "\n" + notes));
}

std::optional<int> parse(CLI::App& app, int argc, char** argv) try {
  app.parse(argc, argv);
  return std::nullopt;
} catch (const CLI::ParseError& error) {
  return app.exit(error) == 0 ? 0 : kWrongUsage;
}

}  // namespace cepheus::command_line
