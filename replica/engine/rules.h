// The rules behind a volume's promises. Tests switch them off one by one to show what each is for.
#pragma once

namespace cepheus::replica {

struct Rules {
  bool mark_before_data = true;      // a write's chunks are in all bitmaps before its data is sent
  bool fencing = true;               // a promise ends all effects of earlier writers
  bool all_before_ack = true;        // a write is acknowledged when every replica in sync has it
  bool copy_before_serving = true;   // a successor makes marked chunks alike before it serves
  bool copy_before_in_sync = true;   // a returning replica is read from once it lacks nothing
  bool least_loss_is_source = true;  // copies come from the replica that may have lost least
  bool flush_before_clear = true;    // a mark is cleared when its chunk's data is on all disks
  bool new_disk_lacks_all = true;    // a replica with a new disk reports it until it was copied
  bool repeat_after_loss = true;  // unacknowledged writes are repeated after all replicas were away
  bool admit_loss = true;         // a writer ends if acknowledged data is gone
  bool admit_new_disks = true;    // ... also if all replicas forgot what the writer knows
  bool evict_hung_disk = true;    // a replica is evicted if its disk hangs while others' do not
  bool evict_refused = true;      // a returning replica is evicted if the group fails with it
  bool forgive_silence = true;    // no silence counts while the writer itself was stopped
};

struct Rule {
  const char* name;
  bool Rules::*member;
};
inline constexpr Rule kRules[] = {{"mark_before_data", &Rules::mark_before_data},
                                  {"fencing", &Rules::fencing},
                                  {"all_before_ack", &Rules::all_before_ack},
                                  {"copy_before_serving", &Rules::copy_before_serving},
                                  {"copy_before_in_sync", &Rules::copy_before_in_sync},
                                  {"least_loss_is_source", &Rules::least_loss_is_source},
                                  {"flush_before_clear", &Rules::flush_before_clear},
                                  {"new_disk_lacks_all", &Rules::new_disk_lacks_all},
                                  {"repeat_after_loss", &Rules::repeat_after_loss},
                                  {"admit_loss", &Rules::admit_loss},
                                  {"admit_new_disks", &Rules::admit_new_disks},
                                  {"evict_hung_disk", &Rules::evict_hung_disk},
                                  {"evict_refused", &Rules::evict_refused},
                                  {"forgive_silence", &Rules::forgive_silence}};

}  // namespace cepheus::replica
