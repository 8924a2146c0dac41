// Attacks of a host on its rings, doorbells and the fabric's sockets.
#pragma once

#include <memory>

#include "tests/hostile/scenario.h"

namespace cepheus::hostile {

// The control measurement instead of an attack: CPU load of one core, on an attached host.
std::unique_ptr<Attack> load_a_core(const Scenario& scenario);
// Descriptors at random, a ring full of them at once; or indices at random.
std::unique_ptr<Attack> send_nonsense(const Scenario& scenario);
std::unique_ptr<Attack> corrupt_indices(const Scenario& scenario);
// Random values in any of the words that it shares with the switch, beside legal actions.
std::unique_ptr<Attack> corrupt_words(const Scenario& scenario);
// Sends requests to the victims that they or the switch may answer, and reads every byte that
// arrives. Prints a line "leak: ..." on standard error for another user's bytes.
std::unique_ptr<Attack> look_for_others_bytes(const Scenario& scenario);
// Rings the switch without a reason.
std::unique_ptr<Attack> ring_for_nothing(const Scenario& scenario);
// Sends many requests on the control socket and reads no answer.
std::unique_ptr<Attack> request_without_end(const Scenario& scenario);
// Connects to the attach socket repeatedly, and sends nothing.
std::unique_ptr<Attack> connect_silently(const Scenario& scenario);

}  // namespace cepheus::hostile
