#include "switch-emulator/engine/group/regions.h"

#include <algorithm>
#include <tuple>

#include "wire/situation.h"

namespace cepheus::fabric {

// Position of that region, present or not.
std::size_t Regions::place_of(PortId port, std::uint32_t number) const {
  const auto place = [](const Region& r) { return std::tuple(r.port, std::uint32_t{r.number}); };
  const auto at = std::ranges::lower_bound(regions_, std::tuple(port, number), {}, place);
  return static_cast<std::size_t>(at - regions_.begin());
}

std::vector<Regions::Serial>::iterator Regions::serial_of(PortId port) {
  return std::ranges::lower_bound(serials_, port, {}, &Serial::port);
}

Regions::Taken Regions::publish(PortId port, std::uint16_t serial,
                                std::span<const wire::MrpRegion> regions) {
  const auto known = serial_of(port);
  if (known == serials_.end() || known->port != port) {
    serials_.insert(known, {port, serial});
  } else {
    if (known->serial == serial) {
      CEPHEUS_SITUATION("a publication comes twice");
      return Taken::kAlready;
    }
    if (checks_.newest_only && !wire::newer_epoch(serial, known->serial)) {
      CEPHEUS_SITUATION("an older publication arrives after a newer one");
      return Taken::kTooOld;
    }
    known->serial = serial;
  }
  const auto old = of(port);
  const auto first = regions_.begin() + (old.data() - regions_.data());
  const auto at = regions_.erase(first, first + static_cast<std::ptrdiff_t>(old.size()));
  std::vector<Region> fresh;
  for (const wire::MrpRegion& r : regions) {
    fresh.push_back({r.virtual_address, r.length, r.rkey, r.number, port});
  }
  regions_.insert(at, fresh.begin(), fresh.end());
  return Taken::kYes;
}

void Regions::remove(PortId port) {
  std::erase_if(regions_, [port](const Region& r) { return r.port == port; });
  std::erase_if(serials_, [port](const Serial& s) { return s.port == port; });
  announcements_.remove(port);
}

const Region* Regions::find(PortId port, std::uint32_t number) const {
  const std::size_t at = place_of(port, number);
  const bool is_there =
      at < regions_.size() && regions_[at].port == port && regions_[at].number == number;
  return is_there ? &regions_[at] : nullptr;
}

const Region* Regions::find_for(PortId port, const wire::Reth& write) const {
  const Region* const region = find(port, write.rkey);
  const bool fits = region != nullptr &&
                    (!checks_.bounds || region->holds(write.virtual_address, write.dma_length));
  return fits ? region : nullptr;
}

std::span<const Region> Regions::of(PortId port) const {
  const std::size_t first = place_of(port, 0);
  std::size_t end = first;
  while (end < regions_.size() && regions_[end].port == port) ++end;
  return std::span(regions_).subspan(first, end - first);
}

void Regions::note_refusal(const WriteRefusal& refusal) {
  const std::uint64_t before = refusal_ ? refusal_->count : 0;
  refusal_ = refusal;
  refusal_->count = before + 1;
}

void Regions::admit(Psn first) {
  if (refused_ && !after(first, *refused_)) refused_.reset();
}

void Regions::on_turn() {
  announcements_.clear();
  refused_.reset();
}

std::size_t Regions::bytes() const {
  return sizeof(Regions) + regions_.capacity() * sizeof(Region) +
         serials_.capacity() * sizeof(Serial) + announcements_.allocated_bytes();
}

}  // namespace cepheus::fabric
