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
      EXPECT_EQ(team[i].send_request(post).value("status", -100), MCAST_INPROGRESS);
    }
  }
  EXPECT_EQ(team[root].send_request(what).value("status", -100), MCAST_INPROGRESS);
  for (int i = 0; with_immediate && i < team.size(); ++i) {
    if (i == root) continue;
    json expect = command("expect");
    expect["seed"] = 0;
    expect["size"] = 0;
    const json reply = team[i].send_request(expect);
    EXPECT_EQ(reply.value("length", std::size_t{0}), what.at("size")) << reply;
  }
  const json ended = team[root].send_request(command("await_send"));
  EXPECT_EQ(ended.value("status", -100), MCAST_OK) << ended;
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
