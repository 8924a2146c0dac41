// Text from elsewhere (names in programs, files, other processes' answers), made safe for a
// terminal or a log.
#pragma once

#include <string>
#include <string_view>

namespace cepheus::wire {

// `text` on one line of a terminal, in UTF-8. Characters that would move the cursor, change colours
// or the direction of writing become "\x1b" or "\u202e". A byte that is not UTF-8 becomes U+FFFD.
std::string printable(std::string_view text);

}  // namespace cepheus::wire
