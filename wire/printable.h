// Text from elsewhere (names in programs, files, other processes' answers), made fit for a terminal or
// a journal.
#pragma once

#include <string>
#include <string_view>

namespace cepheus::wire {

// `text` on one line of a terminal, in UTF-8: what would move the cursor, change colours or the
// direction of writing is shown as "\x1b" or "\u202e", a byte that is no UTF-8 as U+FFFD.
std::string printable(std::string_view text);

}  // namespace cepheus::wire
