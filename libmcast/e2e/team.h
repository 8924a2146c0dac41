// Members on all hosts of a fabric, and operations over all of them.
#pragma once

#include <gtest/gtest.h>
#include <mcast/mcast.h>

#include <stdexcept>

#include "libmcast/e2e/processes.h"

namespace cepheus::mcast::e2e {

inline constexpr int kHosts = 4;
inline const json kBulk = {{"group", "b"}, {"lane", "bulk"}};
inline const json kEager = {{"group", "e"}, {"lane", "eager"}};

struct Message {
  std::uint64_t seed = 1;
  std::size_t size = 0;
  std::uint32_t imm = 0;
};

class Team {
 public:
  // Starts a process per host and opens its context. Registration has more time than by default: on
  // a busy machine members may not be scheduled for a second.
  Team(const Fabric& fabric, int count, const json& open = kUsual) {
    members_.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) members_.emplace_back(fabric.socket(), i);
    for (const json& reply : request_all(open)) {
      if (reply.value("status", -100) != MCAST_OK) throw std::runtime_error(reply.dump());
    }
  }

  // On a fabric of its own, with as many hosts at one switch.
  explicit Team(int count, const json& open = kUsual)
      : Team(std::unique_ptr<Fabric>(new Fabric(Fabric::of(count))), count, open) {}

  Member& operator[](int i) { return members_.at(static_cast<std::size_t>(i)); }
  int size() const { return static_cast<int>(members_.size()); }

  // The same command to all at once; the answers by member.
  std::vector<json> request_all(const json& command) {
    for (Member& m : members_) m.send(command);
    std::vector<json> replies;
    for (Member& m : members_) replies.push_back(m.receive());
    return replies;
  }

  // A member's answer, which must have this status.
  json expect(int member, const json& command, mcast_status_t status) {
    const json reply = (*this)[member].send_request(command);
    EXPECT_EQ(reply.value("status", -100), status) << "member " << member << ": " << reply;
    return reply;
  }
  // The same of all members from `first` on, at once.
  void expect_all(const json& command, mcast_status_t status, int first = 0) {
    for (int i = first; i < size(); ++i) (*this)[i].send(command);
    for (int i = first; i < size(); ++i) {
      const json reply = (*this)[i].receive();
      EXPECT_EQ(reply.value("status", -100), status) << "member " << i << ": " << reply;
    }
  }
  // Every member creates the group; their names, as the leader wants them.
  json create(const json& group) {
    json command = group;
    command["do"] = "create";
    json names = json::array();
    for (const json& reply : request_all(command)) {
      EXPECT_EQ(reply.value("status", -100), MCAST_OK) << reply;
      names.push_back(reply.value("member", json()));
    }
    return names;
  }
  // `regions`: of sender groups, the published ones of all members.
  json lead(int leader, const std::string& group, const json& names,
            const json& regions = json::array()) {
    return (*this)[leader].send_request(
        {{"do", "lead"}, {"group", group}, {"members", names}, {"regions", regions}});
  }
  // The outcome at each member.
  std::vector<json> await_outcome(const std::string& group) {
    return request_all({{"do", "await_outcome"}, {"group", group}});
  }
  // Creates and registers a group that must become active.
  void form(const json& group, int leader = 0) {
    const std::string name = group.at("group");
    register_group(name, create(group), leader);
  }
  void register_group(const std::string& group, const json& names, int leader = 0,
                      const json& regions = json::array()) {
    const json led = lead(leader, group, names, regions);
    EXPECT_EQ(led.value("status", -100), MCAST_OK) << led;
    for (const json& reply : await_outcome(group))
      EXPECT_EQ(reply.value("status", -100), MCAST_OK) << reply;
  }
  void destroy(const std::string& group) { request_all({{"do", "destroy"}, {"group", group}}); }

  // `root` sends, all others must receive exactly that.
  void broadcast(const std::string& group, bool is_bulk, int root, const Message& m,
                 bool registered = false) {
    const json message = {{"group", group}, {"seed", m.seed}, {"size", m.size}, {"imm", m.imm}};
    const auto with = [&](const char* what) {
      json command = message;
      command["do"] = what;
      return command;
    };
    if (is_bulk) {
      for (int i = 0; i < size(); ++i) {
        if (i != root) expect(i, with("post"), MCAST_INPROGRESS);
      }
    }
    json send = with("start_send");
    send["register"] = registered;
    expect(root, send, is_bulk ? MCAST_INPROGRESS : MCAST_OK);
    for (int i = 0; i < size(); ++i) {
      (*this)[i].send(i == root ? with("await_send") : with("expect"));
    }
    for (int i = 0; i < size(); ++i) {
      const json reply = (*this)[i].receive();
      if (i == root) {
        EXPECT_EQ(reply.value("status", -100), MCAST_OK) << reply;
      } else {
        EXPECT_TRUE(reply.value("match", false))
            << "member " << i << ", root " << root << ", " << m.size << " bytes: " << reply;
      }
    }
  }

 private:
  static inline const json kUsual = {{"do", "open"}, {"timeout_ms", 20'000}};

  Team(std::unique_ptr<Fabric> fabric, int count, const json& open) : Team(*fabric, count, open) {
    own_fabric_ = std::move(fabric);
  }

  std::unique_ptr<Fabric> own_fabric_;  // outlives the members
  std::vector<Member> members_;
};

}  // namespace cepheus::mcast::e2e
