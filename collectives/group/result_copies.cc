#include "collectives/group/result_copies.h"

#include <cstring>
#include <utility>

namespace cepheus::coll {

Code ResultCopies::receive(const Name& due, std::size_t bytes, int from) {
  if (!is_receiving_) {
    copy_.resize(sizeof(Name) + bytes);
    const Code rc =
        receives_.receive(copy_.data(), copy_.size(), from, Tag::kReductionResult, team_);
    if (rc != Code::kDone) return rc;
    is_receiving_ = true;
  }
  Code error = Code::kDone;
  if (!receives_.test(error)) return Code::kPending;
  is_receiving_ = false;
  if (error != Code::kDone) return error;
  Name name{};
  std::memcpy(&name, copy_.data(), sizeof name);
  return name == due ? Code::kDone : Code::kFailed;
}

Code ResultCopies::send(const Name& name, const KeptResults& kept, int to) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(&name);
  std::vector<std::byte>& message = sent_.emplace_back(bytes, bytes + sizeof name);
  kept.append_to(message, name.first, name.end);
  return sends_.send(message.data(), message.size(), to, Tag::kReductionResult, team_);
}

std::size_t ResultCopies::take_sent() {
  Code error = Code::kDone;
  if (sent_.empty() || !sends_.test(error)) return 0;
  return std::exchange(sent_, {}).size();
}

void ResultCopies::forget() {
  receives_.forget();
  sends_.forget();
}

}  // namespace cepheus::coll
