#include "switch-emulator/engine/write_mode.h"

#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/replication.h"
#include "wire/announcement.h"

namespace cepheus::fabric {

Disposition WritesToRegions::on_write(Call& call, Group& group, const GroupPacket& packet) const {
  const bool has_address = wire::opcode_info(packet.headers.bth.opcode).reth;
  // Nobody looks at the key of a WRITE without data (IBTA 9.7.4.1.5): one with immediate tells all
  // members something, whether they have regions or not.
  if (has_address && packet.headers.reth.dma_length == 0) return replicate(call, group, packet);
  return has_address ? replicate_addressed(call, group, packet)
                     : replicate_continued(call, group, packet);
}

Disposition AnnouncedWrites::on_write(Call& call, Group& group, const GroupPacket& packet) const {
  if (!wire::opcode_info(packet.headers.bth.opcode).reth) {
    return replicate_continued(call, group, packet);
  }
  const wire::Reth& reth = packet.headers.reth;
  if (reth.rkey == wire::Announcement::kKey) return replicate_announcement(call, group, packet);
  // Nobody looks at the key of a WRITE without data, as above.
  return reth.dma_length == 0 ? replicate(call, group, packet)
                              : replicate_announced(call, group, packet);
}

Disposition WritesAsTheyAre::on_write(Call& call, Group& group, const GroupPacket& packet) const {
  return replicate(call, group, packet);
}

Disposition NoWrites::on_write(Call& call, Group& group, const GroupPacket& packet) const {
  refuse_operation(call, group, packet);
  return Disposition::kDone;
}

}  // namespace cepheus::fabric
