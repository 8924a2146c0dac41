#include "switch-emulator/tools/late_tracks.h"

#include <algorithm>
#include <utility>

namespace cepheus::tools {

std::optional<recording::Track> LateTracks::track_of(const live::LateMember& late) {
  const bool is_trunk = late.host.is_unset();
  const auto at = std::ranges::find_if(nodes_, [&](const recording::Node& node) {
    return node.is_switch == is_trunk && node.name == (is_trunk ? late.at : late.name);
  });
  if (at == nodes_.end()) return std::nullopt;
  const auto node = static_cast<std::uint16_t>(at - nodes_.begin());
  const recording::Track track{recording::Timeline::process_of(node), kThread};
  if (named_.insert(track).second) file_.name_thread(track, "late");
  return track;
}

void LateTracks::look(const live::FabricStatus& status) {
  std::map<Member, Span> before = std::exchange(late_, {});
  const std::int64_t now_ns = status.now.time_since_epoch().count();
  for (const live::LateMember& each : live::late_members(status)) {
    const auto track = track_of(each);
    if (!track) continue;
    const Member member{each.group, each.epoch, each.at, each.name};
    const auto known = before.find(member);
    if (known != before.end() && known->second.unit == each.unit) {
      known->second.end_ns = now_ns;
      late_.insert(before.extract(known));
      continue;
    }
    const std::int64_t begin_ns = std::max(since_ns_, now_ns - each.late.count());
    late_.emplace(member, Span{{*track, begin_ns},
                               now_ns,
                               each.unit,
                               {{"group", each.group.to_string()},
                                {"epoch", each.epoch},
                                {"unit", each.unit},
                                {"name", each.name},
                                {"switch", each.at}}});
  }
  for (const auto& [member, span] : before) write(span);
}

void LateTracks::write(const Span& span) {
  file_.span(span.begin, span.end_ns, "late to unit " + std::to_string(span.unit), span.args);
}

void LateTracks::close() {
  for (auto& [member, span] : late_) {
    span.args["unfinished"] = true;
    write(span);
  }
  late_.clear();
}

}  // namespace cepheus::tools
