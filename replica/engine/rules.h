// The rules that keep a volume's promises, each to be switched off by whoever wants to see what it is for.
#pragma once

#include <iterator>
#include <string_view>

namespace cepheus::replica {

struct Rules {
  bool mark_before_data = true;      // a write's chunks are in all bitmaps before its data is sent
  bool fencing = true;               // a promise ends what earlier writers can do
  bool all_before_ack = true;        // a write is acknowledged when every replica in sync has it
  bool copy_before_serving = true;   // a successor makes marked chunks alike before it serves
  bool copy_before_in_sync = true;   // a replica that returns is read from once it lacks nothing
  bool least_loss_is_source = true;  // copies come from whoever may have lost least
  bool flush_before_clear = true;    // a mark goes when what it stood for is on all disks
  bool new_disk_lacks_all = true;    // a replica with a new disk says so until it was copied
  bool repeat_after_loss = true;     // unacknowledged writes are repeated once all were away
  bool admit_loss = true;            // a writer ends if acknowledged data is gone
  bool evict_hung_disk = true;       // a replica goes if its disk hangs while others' do not
};

inline constexpr const char* kRules[] = {"mark_before_data",    "fencing",
                                         "all_before_ack",      "copy_before_serving",
                                         "copy_before_in_sync", "least_loss_is_source",
                                         "flush_before_clear",  "new_disk_lacks_all",
                                         "repeat_after_loss",   "admit_loss",
                                         "evict_hung_disk"};

// False if there is no rule of that name.
inline bool set_rule(Rules& rules, std::string_view name, bool value) {
  bool Rules::*const members[] = {&Rules::mark_before_data,    &Rules::fencing,
                                  &Rules::all_before_ack,      &Rules::copy_before_serving,
                                  &Rules::copy_before_in_sync, &Rules::least_loss_is_source,
                                  &Rules::flush_before_clear,  &Rules::new_disk_lacks_all,
                                  &Rules::repeat_after_loss,   &Rules::admit_loss,
                                  &Rules::evict_hung_disk};
  for (unsigned i = 0; i < std::size(kRules); ++i) {
    if (name != kRules[i]) continue;
    rules.*members[i] = value;
    return true;
  }
  return false;
}

}  // namespace cepheus::replica
