// Counters of links, and of what the driver drops on a link's switch side: the field, its name, what
// it counts.
#pragma once

#include "net/link.h"
#include "switch-emulator/live/traffic.h"
#include "wire/counter_table.h"

namespace cepheus::live {

template <typename Counts>
struct CountedField {
  std::uint64_t Counts::*value;
  wire::CounterText text;
};

inline constexpr CountedField<net::LinkCounters> kLinkCounters[] = {
    {&net::LinkCounters::dropped_loss, {"link_dropped_loss", "lost, as the link was told to"}},
    {&net::LinkCounters::dropped_queue_full,
     {"link_dropped_queue_full", "the queue before the link was full"}},
    {&net::LinkCounters::dropped_down, {"link_dropped_down", "the link was cut"}},
    {&net::LinkCounters::duplicated, {"link_duplicated", "doubled, as the link was told to"}},
    {&net::LinkCounters::reordered, {"link_reordered", "held back, as the link was told to"}},
    {&net::LinkCounters::corrupted, {"link_corrupted", "damaged, as the link was told to"}},
};

inline constexpr CountedField<LinkSideDrops> kLinkSideDrops[] = {
    {&LinkSideDrops::bad_icrc,
     {"drop_bad_icrc", "ICRC present and wrong, or missing where the fabric makes them always"}},
    {&LinkSideDrops::corrupt, {"drop_damaged", "damaged on a link so that no packet is left"}},
    {&LinkSideDrops::queue_share,
     {"drop_queue_share", "the sender has its share of the queue before the link"}},
    {&LinkSideDrops::no_headroom,
     {"drop_headroom",
      "came by a lossless link and found no room left: its headroom is too small"}},
    {&LinkSideDrops::delay_line_full,
     {"drop_delay_line_full", "too many frames under way on a link"}},
    {&LinkSideDrops::no_slot,
     {"drop_link_no_slot", "no payload slot for a frame that has to wait on a link"}},
    {&LinkSideDrops::share_used_up,
     {"drop_link_share", "the link holds more than its share of a host's payload slots"}},
};

inline constexpr CountedField<QueueReading> kQueueReadings[] = {
    {&QueueReading::ecn_marked, {"ecn_marked", "marked, since the queue before the link was long"}},
    {&QueueReading::high_water,
     {"queue_high_water", "the most bytes that waited before the link since the fabric began"}},
    {&QueueReading::pauses_sent, {"pauses_sent", "the neighbour was asked for silence"}},
    {&QueueReading::pauses_received, {"pauses_received", "the neighbour asked for silence"}},
    {&QueueReading::paused_us, {"paused_us", "of silence that the neighbour asked for, us"}},
    {&QueueReading::group_halts,
     {"group_halts",
      "a group's data had to wait where it came in, since a port of its was paused"}},
    {&QueueReading::group_halted_us,
     {"group_halted_us", "that groups' data waited where it came in, all groups together, us"}},
};

}  // namespace cepheus::live
