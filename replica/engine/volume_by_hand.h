// A writer and its replicas; the test passes each message.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <vector>

#include "replica/engine/replica_engine.h"
#include "replica/engine/writer.h"

namespace cepheus::replica {

using namespace std::chrono_literals;
using Kind = WriterAction::Kind;

inline constexpr Geometry kGeometry{16 * 4096, 4096, 4 * 4096};

// A writer and its replicas. The test passes their messages; nothing moves by itself.
class Volume : public testing::Test {
 protected:
  explicit Volume(unsigned count = 3) : links(count, 1) {
    for (unsigned r = 0; r < count; ++r) {
      replicas.emplace_back(kGeometry, ReplicaRecord::fresh(kGeometry, count));
    }
    start_writer(1);
  }

  void start_writer(std::uint64_t id) {
    WriterSettings settings;
    settings.geometry = kGeometry;
    settings.depth = 4;
    settings.replicas = static_cast<unsigned>(replicas.size());
    writer = std::make_unique<Writer>(settings, id);
  }

  // Executes the writer's actions, except writes, reads and copies, which are noted.
  void run() {
    while (!todo.empty()) {
      WriterActions actions;
      actions.swap(todo);
      for (const WriterAction& action : actions) {
        log.push_back(action);
        if (action.kind == Kind::kSend && !silent.has(action.replica)) {
          ReplicaActions done;
          replicas[action.replica].on_request(links[action.replica], action.request, done);
          for (const ReplicaAction& a : done) {
            if (a.kind != ReplicaAction::Kind::kAnswer) continue;
            writer->on_answer(now, action.replica, a.answer, todo);
          }
        } else if (action.kind == Kind::kForm && forms) {
          if ((action.members & refused).empty()) {
            writer->on_formed(now, action.generation, todo);
          } else {
            writer->on_group_failed(now, action.generation, suspects, suspects.empty(), todo);
          }
        }
      }
    }
    writer->check_consistent();
  }
  void connect(unsigned replica) {
    writer->on_connected(now, replica, todo);
    run();
  }
  void disconnect(unsigned replica) {
    writer->on_disconnected(now, replica, todo);
    run();
  }
  void tick() {
    writer->on_timer(now, todo);
    run();
  }
  void connect_all() {
    for (unsigned r = 0; r < replicas.size(); ++r) connect(r);
  }
  void submit(IoKind kind, std::uint64_t id, std::uint64_t block = 0, std::uint64_t blocks = 1) {
    ASSERT_TRUE(writer->submit(now, {id, kind, block * 4096, blocks * 4096, false}, todo));
    run();
  }
  std::vector<WriterAction> all(Kind kind) const {
    std::vector<WriterAction> found;
    std::copy_if(log.begin(), log.end(), std::back_inserter(found),
                 [kind](const WriterAction& a) { return a.kind == kind; });
    return found;
  }
  void write_is_everywhere(const WriterAction& write) {
    writer->on_written(now, write.attempt, todo);
    run();
  }

  Instant now{1s};
  std::unique_ptr<Writer> writer;
  std::vector<ReplicaEngine> replicas;
  WriterActions todo, log;
  Members silent;
  bool forms = true;          // else groups take long
  Members refused, suspects;  // each group with one of `refused` fails, because of `suspects`
  std::vector<std::uint64_t> links;
};

}  // namespace cepheus::replica
