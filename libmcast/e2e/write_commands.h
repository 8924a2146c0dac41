// Commands for regions of memory: publish them, write to them, check them.
#pragma once

#include "libmcast/e2e/team.h"

namespace cepheus::mcast::e2e {

inline constexpr int kRegion = 7;
inline constexpr std::size_t kSize = 64 * 1024;

inline json command(const char* what) {
  return {{"do", what}, {"group", "b"}, {"region", kRegion}};
}
inline json publish(std::size_t size) {
  json c = command("publish");
  c["size"] = size;
  c["memory"] = kSize;
  return c;
}
inline json write(std::uint64_t seed, std::size_t offset, std::size_t size) {
  json c = command("start_write");
  c["seed"] = seed;
  c["offset"] = offset;
  c["size"] = size;
  return c;
}

// `root` writes, perhaps with immediate. Then all others wait for that.
inline void write_from(Team& team, int root, json what, bool with_immediate) {
  if (with_immediate) {
    what["imm"] = what.at("seed");
    for (int i = 0; i < team.size(); ++i) {
      if (i == root) continue;
      json post = command("post");
      post["size"] = 0;
      team.expect(i, post, MCAST_INPROGRESS);
    }
  }
  team.expect(root, what, MCAST_INPROGRESS);
  for (int i = 0; with_immediate && i < team.size(); ++i) {
    if (i == root) continue;
    json expect = command("expect");
    expect["seed"] = 0;
    expect["size"] = 0;
    const json reply = team[i].send_request(expect);
    EXPECT_EQ(reply.value("length", std::size_t{0}), what.at("size")) << reply;
  }
  team.expect(root, command("await_send"), MCAST_OK);
}

// A WRITE that fails: for the writer, member 0, and for all others.
inline void expect_failed_write(Team& team, const json& what) {
  team.expect(0, what, MCAST_INPROGRESS);
  team.expect(0, command("await_send"), MCAST_ERR_FABRIC);
  team.expect_all(command("await_failure"), MCAST_ERR_FABRIC, 1);
}

inline void expect_regions(Team& team, const std::vector<std::vector<json>>& written) {
  for (int i = 0; i < team.size(); ++i) {
    json holds = command("holds");
    holds["writes"] = written[static_cast<std::size_t>(i)];
    const json reply = team[i].send_request(holds);
    EXPECT_TRUE(reply.value("match", false)) << "member " << i << ": " << reply;
  }
}

}  // namespace cepheus::mcast::e2e
