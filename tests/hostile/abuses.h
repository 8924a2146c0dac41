// Attacks of a host on its rings, doorbells and the fabric's sockets.
#pragma once

#include <memory>

#include "tests/hostile/place.h"

namespace cepheus::hostile {

// The control measurement instead of an attack: CPU load of one core, on an attached host.
std::unique_ptr<Conduct> burn_a_core(const Place& place);
// Descriptors at random, a ring full of them at once; or indices at random.
std::unique_ptr<Conduct> send_nonsense(const Place& place);
std::unique_ptr<Conduct> lie_about_indices(const Place& place);
// Random values in any of the words that it shares with the switch, beside legal actions.
std::unique_ptr<Conduct> corrupt_words(const Place& place);
// Sends requests to the victims that they or the switch may answer, and reads every byte that
// arrives. Prints a line "leak: ..." on standard error for another user's bytes.
std::unique_ptr<Conduct> look_for_others_bytes(const Place& place);
// Rings the switch without a reason.
std::unique_ptr<Conduct> ring_for_nothing(const Place& place);
// Sends many requests on the control socket and reads no answer.
std::unique_ptr<Conduct> ask_without_end(const Place& place);
// Connects to the attach socket repeatedly, and sends nothing.
std::unique_ptr<Conduct> come_without_a_word(const Place& place);

}  // namespace cepheus::hostile
