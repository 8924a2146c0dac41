// A program's surroundings: its standard descriptors, limits and signals.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>

namespace cepheus::command_line {

// Opens closed standard descriptors, so that no pipe or socket gets their numbers: reads and writes
// fail as before. A write beyond the limit of a file's size fails, and does not end the program.
void prepare_process();

// A program's exit code: that of `body`. 1, and a line that says why, if memory or threads ran out,
// or if any output to std::cout was lost.
int run_program(const std::string& program, const std::function<int()>& body);

// Whether the program's parent, such as nohup, has it ignore this signal.
bool is_ignored(int signal);

// Ignored signals stay ignored.
void handle_signals(std::initializer_list<int> signals, void (*handler)(int));

}  // namespace cepheus::command_line
