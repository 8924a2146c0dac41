// A lane's set-up. All members make a queue pair and send their names to the leader, which checks
// them (objection()), registers the group, and sends all members the outcome:
//
//   leader   kUnused -> kGathering -> kRegistering -> kAnnouncing -> kReady | kFailed
//   others   kUnused -> kAnnouncing -> kReady | kFailed
//
// Every member takes part even if it has no device, because the leader waits for all records. The record
// of a member that can't receive the outcome has that (kNoOutcome): the leader announces a failure to
// all others, and no member tries again. If the identifier was in use, all start again, with four
// attempts at most. While this process remembers that no switch answered, the leader announces that
// without a registration. kClosed: ready, and its session ended.
#include "collectives/group/team_lane.h"

#include <arpa/inet.h>
#include <mcast/recovery.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <utility>

#include "collectives/core/parameters.h"
#include "collectives/group/own_stack.h"
#include "wire/situation.h"
#include "wire/types.h"

namespace cepheus::coll {

namespace {

constexpr int kMaxAttempts = 4;

// The depth of an eager lane each way for a number of groups. The process's budget has to serve
// hundreds of communicators, of which the first are mostly the busy ones.
unsigned eager_depth(int groups) {
  if (groups < 16) return TeamLane::kMaxEagerDepth;
  if (groups < 64) return 16;
  return groups < 192 ? 8 : 4;
}

// The reason why these members can't form a group; empty if they can.
std::string objection(const std::vector<MemberRecord>& records, const Team& team) {
  const MemberRecord& first = records.front();
  const std::string leader = std::to_string(team.rank_of(Team::kLeader));
  std::map<uint32_t, std::string> hosts;
  for (size_t member = 0; member < records.size(); ++member) {
    const MemberRecord& record = records[member];
    const std::string rank = "rank " + std::to_string(team.rank_of(static_cast<int>(member)));
    if (record.status != MCAST_OK) return rank + ": " + record.reason;
    // Small broadcasts, large ones and reductions have lanes of their own.
    if (record.lane != first.lane) return rank + " passes another count than rank " + leader;
    if (record.fingerprint != first.fingerprint) {
      return rank + " has other parameters (" + host::parameter("*") + ") than rank " + leader +
             ": give all ranks the same";
    }
    const auto [other, fresh] = hosts.emplace(record.member.ipv4, rank);
    if (!fresh) {
      return other->second + " and " + rank + " share host " +
             wire::Ipv4(ntohl(record.member.ipv4)).to_string() + ": a group has one member a host";
    }
  }
  return "";
}

// libmcast names its own parameter.
std::string in_our_words(std::string why) {
  constexpr char kTheirs[] = "max_eager_memory";
  const size_t at = why.find(kTheirs);
  if (at == std::string::npos) return why;
  return why.replace(at, sizeof kTheirs - 1, host::parameter(kTheirs));
}

std::string messages_failed(Code rc) {
  return std::string(host::implementation()) + "'s point-to-point layer failed during set-up (" +
         std::to_string(static_cast<int>(rc)) + ")";
}

// True if the failure may pass without the user's help.
bool may_pass(int32_t status) {
  switch (status) {
    case MCAST_ERR_REJECTED:
    case MCAST_ERR_TIMED_OUT:
    case MCAST_ERR_ID_IN_USE:
    case MCAST_ERR_FABRIC:
    case MCAST_ERR_NO_MEMORY:
    case MCAST_ERR_NO_DEVICE:  // a port comes up again, a switch is started
    case MCAST_ERR_AGAIN:
    case TeamLane::kRefused:
      return true;
    default:
      return false;
  }
}

bool takes_outcome(const MemberRecord& record) { return record.status != TeamLane::kNoOutcome; }

}  // namespace

// Calls `f` for all members but the leader, until one call fails.
template <typename F>
Code TeamLane::others(F f) const {
  Code rc = Code::kDone;
  for (int member = 1; member < team_.size() && rc == Code::kDone; ++member) rc = f(member);
  return rc;
}

void TeamLane::make_group(MemberRecord& record) {
  record = {};
  record.fingerprint = parameters().fingerprint();
  record.lane = kind_;
  if (!refusal_.empty()) {
    CEPHEUS_SITUATION("a member refuses a new lane after its session failed");
    record.status = kRefused;
    snprintf(record.reason, sizeof record.reason, "%s", refusal_.c_str());
    return;
  }
  Transport& transport = Transport::instance();
  transport.add_group();
  std::string why;
  mcast_status_t status = transport.open(why, again_);
  if (status == MCAST_OK) {
    mcast_group_params_t params = MCAST_GROUP_PARAMS_INIT;
    params.lane = kind_;
    params.max_eager = max_eager_;
    // MPI must not complete a root's send while a late or disconnected rank lacks the data.
    params.lost_member = MCAST_LOST_MEMBER_ENDS_GROUP;
    params.floating_sums = adds_floats_ ? 1 : 0;
    if (is_of_reductions())
      params.reduction_window = parameters().has_long_reductions() ? kLongWindow : kReductionWindow;
    else
      params.recv_depth = params.send_depth =
          kind_ == MCAST_LANE_EAGER ? eager_depth(transport.groups() - 1) : kBulkDepth;
    on_own_stack([&] {
      std::lock_guard<std::mutex> guard(transport.mutex());
      channel_ = transport.open_channel(params, arrival_, arrival_arg_, status);
      if (status == MCAST_OK) status = mcast_group_member(group(), &record.member);
      if (status == MCAST_OK && !team_.is_leader()) status = channel_->join();
      if (status != MCAST_OK) why = in_our_words(mcast_last_error());
    });
  }
  if (channel_ == nullptr) transport.remove_group();
  record.status = status;
  snprintf(record.reason, sizeof record.reason, "%s", why.c_str());
}

void TeamLane::start() {
  ++attempts_;
  stopped_ = false;
  make_group(own_);
  Code rc = Code::kDone;
  if (team_.is_leader()) {
    records_.assign(static_cast<size_t>(team_.size()), MemberRecord{});
    records_.front() = own_;
    rc = others([&](int member) {
      return messages_.receive(&records_[static_cast<size_t>(member)], sizeof(MemberRecord), member,
                               set_up_tag(), team_);
    });
  } else {
    rc = messages_.receive(&outcome_, sizeof outcome_, Team::kLeader, outcome_tag(), team_);
    if (rc != Code::kDone) return fail_with_record(rc);
    rc = record_.send(&own_, sizeof own_, Team::kLeader, set_up_tag(), team_);
  }
  if (rc != Code::kDone) return fail_alone(rc);
  set_state(team_.is_leader() ? State::kGathering : State::kAnnouncing);
}

// MPI has refused this member the receive of the outcome. The others learn that.
void TeamLane::fail_with_record(Code rc) {
  own_.status = kNoOutcome;
  snprintf(own_.reason, sizeof own_.reason, "%s", messages_failed(rc).c_str());
  const Code sent = Messages::post(&own_, sizeof own_, Team::kLeader, set_up_tag(), team_);
  if (sent != Code::kDone) return fail_alone(sent);
  fail(rc);
}

// The other members do not know of it.
void TeamLane::fail_alone(Code rc) {
  failed_message_ = rc;
  fail(rc);
}

void TeamLane::fail(Code rc) {
  messages_.forget();
  record_.forget();
  outcome_.status = MCAST_ERR_FABRIC;
  outcome_.retry_after = kNever;
  snprintf(outcome_.reason, sizeof outcome_.reason, "%s", messages_failed(rc).c_str());
  finish();
}

void TeamLane::gathered() {
  if (is_lost() && std::ranges::all_of(records_, takes_outcome)) return announce_lost();
  const std::string why = objection(records_, team_);
  if (!why.empty()) {
    // If several members object, the most lasting reason counts.
    const auto lasting = std::find_if(records_.begin(), records_.end(), [](const MemberRecord& r) {
      return r.status != MCAST_OK && !may_pass(r.status);
    });
    const auto any = std::find_if(records_.begin(), records_.end(),
                                  [](const MemberRecord& r) { return r.status != MCAST_OK; });
    const bool passes = lasting == records_.end() && any != records_.end();
    return announce(passes ? any->status : static_cast<int32_t>(MCAST_ERR_INVALID), why);
  }
  if (adds_floats_) {
    why_no_sums_ = why_not_ascending(records_, team_);
    // The switches keep no memory for sums that will go by messages.
    const bool is_unused = parameters().chosen_reproducible() == Reproducible::kRank;
    if (is_unused && !why_no_sums_.empty()) return announce(kNoSums, why_no_sums_);
  }
  std::vector<mcast_member_t> members;
  members.reserve(records_.size());
  for (const MemberRecord& record : records_) members.push_back(record.member);
  Transport& transport = Transport::instance();
  if (const std::string why_not = transport.why_not_register(); !why_not.empty())
    return announce(MCAST_ERR_TIMED_OUT, why_not);
  began_ = Clock::now();
  mcast_status_t status = MCAST_OK;
  {
    const std::lock_guard<std::mutex> guard(transport.mutex());
    status = channel_->lead(members);
  }
  if (status != MCAST_OK && status != MCAST_INPROGRESS) return announce(status, mcast_last_error());
  set_state(State::kRegistering);
}

// The session has failed meanwhile. The others still wait for the outcome.
void TeamLane::announce_lost() {
  CEPHEUS_RARE_SITUATION("a session fails while its leader sets a lane up");
  announce(kRefused, rank_text(team_) + ": the fabric failed during the group's set-up");
}

// For the lanes of all communicators: whether a switch answers.
void TeamLane::remember(mcast_status_t status, const mcast_group_attr_t& attr) const {
  Transport& transport = Transport::instance();
  const bool is_over = status == MCAST_OK || status == MCAST_ERR_ID_IN_USE ||
                       status == MCAST_ERR_REJECTED || status == MCAST_ERR_TIMED_OUT;
  if (!is_over) return;
  const bool is_unanswered =
      status == MCAST_ERR_TIMED_OUT && attr.members > 1 && attr.members_missing + 1 == attr.members;
  transport.end_registration(began_, attr.members, is_unanswered ? attr.reason : "");
}

void TeamLane::registered(mcast_status_t status) {
  mcast_group_attr_t attr = MCAST_GROUP_ATTR_INIT;
  (void)mcast_group_query(group(), &attr);
  remember(status, attr);
  outcome_.mcst_id = attr.mcst_id;
  outcome_.epoch = attr.epoch;
  outcome_.max_message = attr.max_message;
  // A switch has no memory left for sums, or does not know them.
  if (status == MCAST_ERR_REJECTED && adds_floats_) {
    why_no_sums_ = std::string("its group can't add floating-point numbers: ") + attr.reason;
    return announce(kNoSums, why_no_sums_);
  }
  find_sums(attr);
  announce(status, status == MCAST_OK ? why_no_sums_ : attr.reason);
}

// Of a group that has come up.
void TeamLane::find_sums(const mcast_group_attr_t& attr) {
  const bool is_by_rank = attr.is_flat != 0 && attr.is_ascending != 0;
  outcome_.sums = !adds_floats_ ? SumOrder::kNone : is_by_rank ? SumOrder::kRank : SumOrder::kTree;
  if (adds_floats_ && attr.is_flat == 0)
    why_no_sums_ = std::string(kNotFlat) + " (" + host::parameter("reproducible") + ")";
}

void TeamLane::announce(int32_t status, const std::string& reason) {
  const std::vector<MemberRecord> records = std::exchange(records_, {});
  const bool may_try_again = may_pass(status) && std::ranges::all_of(records, takes_outcome);
  outcome_.status = status;
  outcome_.retry_after = may_try_again ? retry_after_ : kNever;
  snprintf(outcome_.reason, sizeof outcome_.reason, "%s", reason.c_str());
  failed_message_ = others([&](int member) {
    if (!takes_outcome(records[static_cast<size_t>(member)])) return Code::kDone;
    return messages_.send(&outcome_, sizeof outcome_, member, outcome_tag(), team_);
  });
  set_state(State::kAnnouncing);
}

void TeamLane::announced(Code error) {
  // Small broadcasts may have arrived here: the group stays until its failure shows.
  if (error != Code::kDone && !team_.is_leader() && is_of_reductions()) return fail_alone(error);
  if (failed_message_ == Code::kDone) failed_message_ = error;
  // Not the outcome's reason, which some members may lack.
  if (is_one_sided())
    snprintf(outcome_.reason, sizeof outcome_.reason, "%s",
             messages_failed(failed_message_).c_str());
  finish();
}

void TeamLane::finish() {
  messages_.shrink();  // a lane is set up once
  record_.shrink();
  if (outcome_.status == MCAST_OK) {
    mcast_group_attr_t attr = MCAST_GROUP_ATTR_INIT;
    if (group() != nullptr && mcast_group_query(group(), &attr) == MCAST_OK)
      portion_ = attr.portion, max_message_ = attr.max_message;
    // All members divide a long reduction alike.
    takes_less_ = is_of_reductions() && max_message_ < outcome_.max_message;
    if (is_of_reductions()) max_message_ = static_cast<size_t>(outcome_.max_message);
    // Without a group this member's session has failed meanwhile.
    if (channel_ == nullptr)
      CEPHEUS_RARE_SITUATION("a lane is ready at a member after its session failed");
    return set_state(channel_ != nullptr ? State::kReady : State::kClosed);
  }
  destroy();
  set_state(starts_again() ? State::kUnused : State::kFailed);
}

// Alike on all members.
bool TeamLane::starts_again() {
  if (outcome_.status == MCAST_ERR_ID_IN_USE) CEPHEUS_SITUATION("a group's identifier is taken");
  if (outcome_.status == kNoSums) {
    CEPHEUS_SITUATION("a group of reductions comes up without floating-point sums");
    adds_floats_ = false;
    return !is_one_sided();
  }
  return outcome_.status == MCAST_ERR_ID_IN_USE && attempts_ < kMaxAttempts && !is_one_sided();
}

Cause cause_of(mcast_cause_t cause) {
  constexpr std::array kCauses{Cause::kWork,   Cause::kWork,   Cause::kWork, Cause::kWatchdog,
                               Cause::kDevice, Cause::kLeader, Cause::kWork};
  static_assert(kCauses.size() == MCAST_CAUSE_STOPPED + 1);
  return cause < kCauses.size() ? kCauses[cause] : Cause::kWork;
}

TeamLane::State TeamLane::progress() {
  Code error = Code::kDone;
  switch (state_) {
    case State::kUnused:
      start();
      break;
    case State::kGathering:
      if (!messages_.test(error)) break;
      error == Code::kDone ? gathered() : announce(MCAST_ERR_FABRIC, messages_failed(error));
      break;
    case State::kRegistering: {
      if (is_lost()) {
        announce_lost();
        break;
      }
      const mcast_status_t status = mcast_group_test(group());
      if (status != MCAST_INPROGRESS) registered(status);
      break;
    }
    case State::kAnnouncing:
      // A record that is lost has no answer.
      if (!record_.test(error) || (error == Code::kDone && !messages_.test(error))) break;
      announced(error);
      break;
    case State::kReady:
    case State::kFailed:
    case State::kClosed:
      break;
  }
  return state_;
}

void TeamLane::reset() {
  attempts_ = 0;
  failed_message_ = Code::kDone;
  again_ = true;
  outcome_ = {};
  set_state(State::kUnused);
}

bool TeamLane::has_failed(mcast_group_attr_t& attr) const {
  if (mcast_group_test(group()) >= 0) return false;
  return mcast_group_query(group(), &attr) == MCAST_OK;
}

void TeamLane::stop(const char* reason) {
  if (group() == nullptr) return;
  stopped_ = true;
  (void)mcast_group_stop(group(), reason);
}

bool TeamLane::is_drained() const {
  mcast_group_attr_t attr = MCAST_GROUP_ATTR_INIT;
  if (group() == nullptr || mcast_group_query(group(), &attr) != MCAST_OK) return true;
  return attr.recvs_posted == 0 && attr.sends_outstanding == 0;
}

std::string TeamLane::address() const { return wire::Ipv4(outcome_.mcst_id).to_string(); }

unsigned TeamLane::outstanding() const {
  return state_ == State::kReady ? mcast_group_outstanding(group()) : 0;
}

void TeamLane::destroy() {
  Transport& transport = Transport::instance();
  std::lock_guard<std::mutex> guard(transport.mutex());
  if (state_ == State::kReady) set_state(State::kClosed);
  if (channel_ == nullptr) return;
  channel_.reset();
  transport.remove_group();
}

}  // namespace cepheus::coll
