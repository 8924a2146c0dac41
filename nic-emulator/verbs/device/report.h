// The library's texts for users: the last error, and diagnostics under CEPHEUS_VERBOSE.
#pragma once

#include <string>

namespace cepheus::verbs {

// Remembers `text` for cepheus_roce_last_error() on the same thread.
void set_last_error(const std::string& text);
// Valid until the thread's next error; "" if it has had none.
const char* last_error();

// One line "cepheus: <text>" on stderr: for errors that the program itself can't print usefully.
void print_line(const std::string& text);
// The same, only if CEPHEUS_VERBOSE is set.
void log_verbose(const std::string& text);
bool is_verbose();

}  // namespace cepheus::verbs
