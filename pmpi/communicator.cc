// A communicator's object is an attribute, made at its first broadcast. It has a state only if it
// is served: not for intercommunicators, ranks of several jobs, or fewer ranks than min_members.
// Requests share the object, and the last owner destroys it.
//
// Messages go over one private communicator of all ranks. Each rank has a block of tags for each
// communicator. MPI_COMM_WORLD's is known; others are exchanged by one MPI_Allgather at the first
// broadcast. Without a block the MPI library serves, or mode "require" ends the job.
#include "pmpi/communicator.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "collectives/communicators.h"
#include "collectives/core/eligibility.h"
#include "collectives/core/parameters.h"
#include "pmpi/calls.h"

namespace cepheus::pmpi {

using namespace coll;

thread_local Comm ending = kCommNull;

namespace {

int keyval = kKeyvalInvalid;
Comm own = kCommNull, messages = kCommNull;
std::vector<bool> on_this_machine;  // by rank of MPI_COMM_WORLD
std::atomic<bool> is_closed{false};

// While messages still arrive. MPI may delete a communicator only when its last request is complete,
// inside its progress: MPICH 4.2 ends a program that then calls its progress again.
int on_comm_free(Comm comm, int, void* value, void*) {
  auto& communicator = *static_cast<Communicator*>(value);
  (void)name_of(communicator);
  {
    const std::lock_guard<std::mutex> guard(communicator.naming);
    *communicator.programs = kCommNull;
  }
  if (is_closed) return kSuccess;
  if (communicator.state) free_communicator(*communicator.state, comm != ending);
  give_back(communicator);
  return kSuccess;
}

// The ranks of MPI_COMM_WORLD that `comm`'s ranks are; kUndefined for those of other jobs. Empty: MPI
// failed.
std::vector<int> world_ranks_of(Comm comm, int size) {
  std::vector<int> ranks(static_cast<std::size_t>(size)), found(ranks.size(), kUndefined);
  std::iota(ranks.begin(), ranks.end(), 0);
  Group group{}, world{};
  if (calls().Comm_group(comm, &group) != kSuccess) return {};
  int rc = calls().Comm_group(kCommWorld, &world);
  if (rc == kSuccess) {
    rc = calls().Group_translate_ranks(group, size, ranks.data(), world, found.data());
    (void)calls().Group_free(&world);
  }
  (void)calls().Group_free(&group);
  return rc == kSuccess ? found : std::vector<int>();
}

bool find_this_machine() {
  int all = 0, here = 0;
  Comm machine = kCommNull;
  if (calls().Comm_split_type(kCommWorld, kTypeShared, 0, kInfoNull, &machine) != kSuccess ||
      calls().Comm_size(kCommWorld, &all) != kSuccess)
    return false;
  on_this_machine.assign(static_cast<std::size_t>(all), false);
  if (calls().Comm_size(machine, &here) == kSuccess) {
    for (const int each : world_ranks_of(machine, here)) {
      if (each >= 0) on_this_machine[static_cast<std::size_t>(each)] = true;
    }
  }
  return calls().Comm_free(&machine) == kSuccess;
}

void explain(const Communicator& communicator, const std::string& why) {
  if (communicator.rank != 0) return;
  host::log(1, "cepheus: %s (%d ranks): %s's own algorithms: %s", name_of(communicator).c_str(),
            communicator.size, host::implementation(), why.c_str());
}

void decide(Communicator& communicator, bool is_inter) {
  const Parameters& p = parameters();
  const Eligibility eligibility =
      eligibility_of({communicator.size, is_inter, is_fault_tolerant()}, p);
  if (eligibility == Eligibility::kTooFewMembers) {
    explain(communicator,
            "fewer than " + host::parameter("min_members") + " = " + std::to_string(p.min_members));
  } else if (eligibility == Eligibility::kEligible && host::is_dynamic(communicator)) {
    explain(communicator, "its ranks belong to several jobs");
  } else if (eligibility == Eligibility::kEligible) {
    communicator.state.emplace(communicator);
    watch_communicator(*communicator.state);
  }
}

// Not by MPI_Comm_dup, which would call the program's functions that copy attributes.
bool make_message_communicator() {
  Group world{};
  if (calls().Comm_group(kCommWorld, &world) != kSuccess) return false;
  const bool is_made = calls().Comm_create(kCommWorld, world, &messages) == kSuccess;
  (void)calls().Group_free(&world);
  return is_made && calls().Comm_set_errhandler(messages, kErrorsReturn) == kSuccess;
}

TagBlocks& tag_blocks() {
  static TagBlocks& blocks = *new TagBlocks([] {
    const int* greatest = nullptr;
    int found = 0;
    const int rc = calls().Comm_get_attr(kCommWorld, kTagUb, static_cast<void*>(&greatest), &found);
    return rc == kSuccess && found != 0 ? *greatest : 0;
  }());
  return blocks;
}

}  // namespace

bool open_communicators() {
  return calls().Comm_create_keyval(copy_nothing, on_comm_free, &keyval, nullptr) == kSuccess &&
         calls().Comm_dup(kCommSelf, &own) == kSuccess &&
         calls().Comm_set_errhandler(own, kErrorsReturn) == kSuccess;
}

bool open_world() {
  if (!find_this_machine() || !make_message_communicator()) return false;
  Communicator* const world = communicator_of(kCommWorld);
  const int block = tag_blocks().take();  // the first one of every rank
  if (world == nullptr || block == kNoBlock) return false;
  world->addresses.set({block});
  return true;
}

void close_communicators() {
  finalize_communicators();
  is_closed = true;
}

Communicator* communicator_of(Comm comm) {
  void* value = nullptr;
  int found = 0;
  if (calls().Comm_get_attr(comm, keyval, static_cast<void*>(&value), &found) != kSuccess)
    return nullptr;
  if (found != 0) return static_cast<Communicator*>(value);
  auto made = std::make_unique<Communicator>();
  int is_inter = 0;
  if (calls().Comm_test_inter(comm, &is_inter) != kSuccess ||
      calls().Comm_rank(comm, &made->rank) != kSuccess ||
      calls().Comm_size(comm, &made->size) != kSuccess)
    return nullptr;
  *made->programs = comm;
  if (is_inter == 0) made->world_ranks = world_ranks_of(comm, made->size);
  if (calls().Comm_set_attr(comm, keyval, made.get()) != kSuccess) return nullptr;
  Communicator& communicator = *made.release();
  decide(communicator, is_inter != 0);
  return &communicator;
}

std::string name_of(const Communicator& communicator) {
  const std::lock_guard<std::mutex> guard(communicator.naming);
  char name[kMaxObjectName] = "";
  int length = 0;
  if (*communicator.programs != kCommNull &&
      calls().Comm_get_name(*communicator.programs, name, &length) == kSuccess)
    communicator.name = length > 0 ? name : "a communicator without a name";
  return communicator.name;
}

// MPI reports a failure here to the program, as of its own broadcast.
const char* exchange_tags(Communicator& communicator, Comm comm) {
  if (communicator.addresses.is_known() || *communicator.why_no_addresses != '\0')
    return communicator.why_no_addresses;
  const int own_block = tag_blocks().take();
  std::vector<int> blocks(static_cast<std::size_t>(communicator.size), kNoBlock);
  const int rc = calls().Allgather(&own_block, 1, kInt, blocks.data(), 1, kInt, comm);
  if (std::ranges::find(blocks, kNoBlock) == blocks.end()) {
    communicator.addresses.set(std::move(blocks));
    return "";
  }
  tag_blocks().give_back(own_block);
  communicator.why_no_addresses =
      rc == kSuccess ? "MPI has no tags left for our messages" : "MPI_Allgather failed";
  explain(communicator, communicator.why_no_addresses);
  if (rc == kSuccess && parameters().chosen_mode() == Mode::kRequire) {
    if (communicator.rank == 0) host::abort_job(communicator, communicator.why_no_addresses);
    for (;;) host::progress();  // until then
  }
  return communicator.why_no_addresses;
}

Comm message_communicator() { return messages; }

void give_back(Communicator& communicator) {
  if (communicator.owners.fetch_sub(1) > 1) return;
  communicator.state.reset();  // which may still cancel messages
  if (communicator.addresses.is_known() && !communicator.has_retired_tags)
    tag_blocks().give_back(communicator.addresses.block(communicator.rank));
  delete &communicator;
}

bool is_on_this_machine(int world_rank) {
  return world_rank >= 0 && on_this_machine[static_cast<std::size_t>(world_rank)];
}

Comm own_communicator() { return own; }

}  // namespace cepheus::pmpi
