// Command lines of programs: help, version and wrong usage in one form.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

namespace cepheus::command_line {

// Sets name, --help, --version ("NAME VERSION") and the text of wrong usage, and prepares the
// process (process.h). Call it first in main(): subcommands inherit --help.
void set_up(CLI::App& app, const std::string& name, const std::string& version);

// Ends the help of a program or subcommand with "Example: COMMAND". Wrong usage prints the same
// line. Call it for a program after its subcommands are added, else they inherit the example.
void set_example(CLI::App& app, const std::string& command, const std::string& notes = "");

// Parses. If it printed help, version or wrong usage: the exit code, 0, or 2 for wrong usage.
std::optional<int> parse(CLI::App& app, int argc, char** argv);

}  // namespace cepheus::command_line
