// What the library says to people: the last error, and diagnostics under CEPHEUS_VERBOSE.
#pragma once

#include <string>

namespace cepheus::verbs {

// Remembers `text` for cepheus_roce_last_error(). Thread-safe.
void set_last_error(const std::string& text);
// The caller's own copy, valid until its next call on the same thread; "" if there was no error.
const char* last_error();

// One line "cepheus: <text>" on stderr: for errors that the program itself can't print usefully.
void complain(const std::string& text);
// The same, only if CEPHEUS_VERBOSE is set.
void say(const std::string& text);
bool is_verbose();

}  // namespace cepheus::verbs
