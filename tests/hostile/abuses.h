// What a host may do with its rings, doorbells and the fabric's sockets that it should not.
#pragma once

#include <memory>

#include "tests/hostile/place.h"

namespace cepheus::hostile {

// Nothing: what the control has in an attacker's place, a core's worth of it, on an attached host.
std::unique_ptr<Attack> burn_a_core(const Place& place);
// Descriptors at random, a ring full of them at once; or indices at random.
std::unique_ptr<Attack> send_nonsense(const Place& place);
std::unique_ptr<Attack> lie_about_indices(const Place& place);
// Nonsense in any of the words that it shares with the switch, beside legal actions.
std::unique_ptr<Attack> corrupt_words(const Place& place);
// Sends to the victims what they or the switch may answer, and looks at every byte that comes: a
// line "leak: ..." on standard error for what is another user's.
std::unique_ptr<Attack> look_for_others_bytes(const Place& place);
// Rings the switch without a reason.
std::unique_ptr<Attack> ring_for_nothing(const Place& place);
// Asks much on the control socket and reads no answer.
std::unique_ptr<Attack> ask_without_end(const Place& place);
// Comes to the attach socket ever again, and says nothing.
std::unique_ptr<Attack> come_without_a_word(const Place& place);

}  // namespace cepheus::hostile
