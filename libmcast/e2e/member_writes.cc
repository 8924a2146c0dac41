// Memory that others write to, and multicast WRITEs.
#include <endian.h>
#include <mcast/senders.h>

#include <algorithm>

#include "libmcast/e2e/member.h"
#include "libmcast/e2e/pattern.h"
#include "libmcast/e2e/region_names.h"

namespace cepheus::mcast::e2e {

// `size` bytes of the region's memory, `memory` of which there are (or as many).
json Member::publish(Group& g, const json& c) {
  const int number = c.at("region");
  const std::size_t size = c.at("size");
  auto& region = g.regions[number];
  if (!region) {
    region = std::make_unique<GuardedMemory>(c.value("memory", size));
  }
  return answer(mcast_region_publish(g.handle, static_cast<std::uint16_t>(number),
                                     region->bytes().data(), size));
}

// The same memory under that number, for the writer: its target is in the answer.
json Member::open_memory(Group& g, const json& c) {
  auto& region = g.regions[c.at("region").get<int>()];
  region = std::make_unique<GuardedMemory>(c.at("memory"));
  const auto bytes = region->bytes();
  mcast_mem_h memory = nullptr;
  mcast_target_t t{};
  mcast_status_t status = mcast_mem_register_writable(context_, bytes.data(),
                                                      c.value("registered", bytes.size()), &memory);
  if (status == MCAST_OK) status = mcast_mem_target(memory, bytes.data(), c.at("size"), &t);
  opened_.emplace_back(memory);
  json out = answer(status);
  out["target"] = {t.ipv4, t.rkey, t.address, t.length};
  return out;
}

// The addresses `offset` bytes behind the beginning of each target.
std::vector<mcast_target_t> Member::parts_of(const json& targets, std::uint64_t offset) {
  std::vector<mcast_target_t> parts;
  for (const json& t : targets) {
    const mcast_target_t whole{t.at(0), t.at(1), t.at(2), t.at(3)};
    const std::uint64_t length = be64toh(whole.length);
    mcast_target_t part = whole;
    mcast_target_part(&whole, offset, length > offset ? length - offset : 0, &part);
    parts.push_back(part);
  }
  return parts;
}

// The member's name and regions, for the sender of a sender group.
json Member::regions(Group& g) {
  std::vector<mcast_region_t> list(40);
  size_t count = list.size();
  json out = answer(mcast_group_regions(g.handle, list.data(), &count));
  list.resize(std::min(count, list.size()));
  out["regions"] = json_of(list);
  return out;
}

json Member::await_regions(Group& g) {
  wait([&] { return mcast_region_test(g.handle) != MCAST_INPROGRESS; });
  return answer(mcast_region_test(g.handle));
}

// A bulk send into regions; "await_send" ends it.
json Member::start_write(Group& g, const json& c) {
  auto bulk = std::make_unique<Bulk>();
  bulk->buffer = pattern(c.at("seed"), c.at("size"));
  bulk->op = {on_done, bulk.get()};
  const std::uint32_t imm = c.value("imm", 0u);
  const std::uint32_t* const immediate = c.contains("imm") ? &imm : nullptr;
  mcast_status_t status = MCAST_OK;
  if (c.contains("targets")) {
    const auto targets = parts_of(c.at("targets"), c.at("offset"));
    status = mcast_write_to(g.handle, bulk->buffer.data(), bulk->buffer.size(), nullptr,
                            targets.data(), targets.size(), immediate, &bulk->op);
  } else {
    status = mcast_write(g.handle, bulk->buffer.data(), bulk->buffer.size(), nullptr,
                         c.at("region"), c.at("offset"), immediate, &bulk->op);
  }
  if (status == MCAST_INPROGRESS) g.sends.push_back(std::move(bulk));
  return answer(status);
}

// True if the region's whole memory is exactly the result of these WRITEs.
json Member::holds(Group& g, const json& c) {
  const auto memory = g.regions.at(c.at("region"))->bytes();
  std::vector<std::uint8_t> wanted(memory.size(), GuardedMemory::kUntouched);
  for (const json& w : c.at("writes")) {
    const auto data = pattern(w.at("seed"), w.at("size"));
    std::copy(data.begin(), data.end(), wanted.begin() + w.at("offset").get<std::ptrdiff_t>());
  }
  const auto [there, expected] = std::mismatch(memory.begin(), memory.end(), wanted.begin());
  return {{"match", there == memory.end()}, {"differs_at", there - memory.begin()}};
}

}  // namespace cepheus::mcast::e2e
