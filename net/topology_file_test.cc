#include <gmock/gmock.h>

#include "net/topology.h"

namespace cepheus::net {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(TopologyFile, NeedsNoMoreThanHosts) {
  const auto t = Topology::from_toml("[[host]]\nname = \"a\"\naddress = \"10.1.0.1\"\n");
  ASSERT_TRUE(t) << t.error().text;
  EXPECT_EQ(t->mtu, 4096u);
  EXPECT_FALSE(t->icrc_always);
  EXPECT_EQ(t->switches[0].name, "s0");
  EXPECT_TRUE(t->hosts[0].up.rate.is_unlimited());
  EXPECT_FALSE(t->hosts[0].up.is_faulty());
}

// An assertion in toml++ ended the program.
TEST(TopologyFile, RefusesTextThatIsNotToml) {
  for (const char* text : {"[:", "[[:", "a = [", "\"", "= 1"}) {
    EXPECT_FALSE(Topology::from_toml(text)) << text;
  }
}

TEST(TopologyFile, ReadsBackTextWithQuotes) {
  Topology t = Topology::star(1);
  t.key_file = "a \"key\"\\\n\x7f";
  t.users = {"\"", "\\"};
  const auto back = Topology::from_toml(t.to_toml());
  ASSERT_TRUE(back) << back.error().text;
  EXPECT_EQ(back->key_file, t.key_file);
  EXPECT_EQ(back->users, t.users);
}

TEST(TopologyFile, NamesAFileThatIsNotThere) {
  const auto t = Topology::from_file("/nonexistent/fabric.toml");
  ASSERT_FALSE(t);
  EXPECT_THAT(t.error().text, HasSubstr("/nonexistent/fabric.toml"));
}

struct Mistake {
  int line;  // 0: the whole file
  const char* word;
  std::string toml;
};

TEST(TopologyFile, ReportsAMistakeWithItsLineAndAWordOfIt) {
  const std::string kHost = "[[host]]\nname = \"a\"\naddress = \"10.0.0.1\"\n";
  const std::string kSwitch = "[[switch]]\nname = \"a\"\n";
  const Mistake mistakes[] = {
      {2, "rate = 10 has no unit", "[link]\nrate = 10\n"},
      {2, "not a number with a unit", "[link]\nrate = \"10\"\n"},
      {2, "delay = 2.5", "[link]\ndelay = 2.5\n"},
      {2, "queue = true", "[link]\nqueue = true\n"},
      {2, "loss = 1.5", "[link]\nloss = 1.5\n"},
      {2, "256 to 4096", "[fabric]\nmtu = 9000\n"},
      {1, "not a path MTU", "[fabric]\nmtu = 1500\n" + kHost},
      {2, "icrc = \"never\"", "[fabric]\nicrc = \"never\"\n"},
      {2, "mcst_pool = \"198.18.0.0\"", "[fabric]\nmcst_pool = \"198.18.0.0\"\n"},
      {1, "treat specially", "[fabric]\nmcst_pool = \"224.0.0.0/8\"\n" + kHost},
      {1, "below 100us", "[fabric]\nhello = \"5us\"\n" + kHost},
      {1, "not below 1s", "[fabric]\nhello = \"1s\"\n" + kHost},
      {1, "UDP port", "[fabric]\nmrp_port = 4791\n" + kHost},
      {3, "unknown key 'rat' in [link]", "[link]\n\nrat = \"1Gbps\"\n"},
      {2, "unknown key 'zebra' in [fabric]", "[fabric]\nzebra = 1\napple = 1\n"},
      {1, "unknown key 'hosts' in the topology", "[[hosts]]\nname = \"a\"\n"},
      {4, "unknown key 'los' in link of [[host]]", kHost + "link = { los = 1 }\n"},
      {1, "not a list of tables", "[host]\nname = \"a\"\n"},
      {1, "fabric = 3", "fabric = 3\n"},
      {1, "table header", "[link\n"},
      {0, "no host", ""},
      {1, "no name", "[[host]]\naddress = \"10.0.0.1\"\n"},
      {1, "no address", "[[host]]\nname = \"a\"\n"},
      {2, "name = 4", "[[host]]\nname = 4\n"},
      {3, "address = \"10.0.0\"", "[[host]]\nname = \"a\"\naddress = \"10.0.0\"\n"},
      {1, "no letter", "[[host]]\nname = \"4\"\naddress = \"10.0.0.1\"\n"},
      {1, "taken already", "[[host]]\nname = \"s0\"\naddress = \"10.0.0.1\"\n"},
      {4, "belongs to", kHost + "[[host]]\nname = \"b\"\naddress = \"10.0.0.1\"\n"},
      {5, "leads to 'a'",
       kHost + "interface = \"p0\"\n[[host]]\nname = \"b\"\naddress = \"10.0.0.2\"\ninterface = "
               "\"p0\"\n"},
      {1, "of a link is not a path MTU", kHost + "link = { mtu = 1500 }\n"},
      {3, "larger than the fabric's 1024",
       "[fabric]\nmtu = 1024\n" + kHost + "link = { mtu = 2048 }\n"},
      {1, "60min", kHost + "link = { delay = \"61min\" }\n"},
      {3, "leads to 'all", "[fabric]\none_armed = \"p0\"\n" + kHost + "interface = \"p0\"\n"},
      {1, "one_armed = 'no name'", "[fabric]\none_armed = \"no name\"\n" + kHost},
      {1, "takes one switch",
       "[fabric]\none_armed = \"p0\"\n[[switch]]\nname = \"s0\"\n[[switch]]\nname = \"s1\"\n" +
           kHost + "switch = \"s0\"\n"},
      {6, "mac = \"02:00\"", "[fabric]\none_armed = \"p0\"\n" + kHost + "mac = \"02:00\"\n"},
      {1, "one-armed interface", kHost + "interface = \"p0\"\nmac = \"any\"\n"},
      {1, "interface 'a-name-too-long-for-any'",
       kHost + "interface = \"a-name-too-long-for-any\"\n"},
      {1, "not a host's address", "[[host]]\nname = \"a\"\naddress = \"224.0.0.1\"\n"},
      {1, "pool", "[[host]]\nname = \"a\"\naddress = \"198.18.3.4\"\n"},
      {6, "there is no switch 'laef'",
       "[[switch]]\nname = \"leaf\"\n" + kHost + "switch = \"laef\"\n"},
      {5, "several switches",
       kSwitch + "[[switch]]\nname = \"b\"\n[[host]]\nname = \"h0\"\naddress = \"10.0.0.1\"\n"},
      {1, "no name", "[[switch]]\nmax_groups = 5\n"},
      {3, "max_paths = 65536", kSwitch + "max_paths = 65536\n"},
      {3, "register_rate = 0", kSwitch + "register_rate = 0\n"},
      {3, "max_groups_per_host = 0", kSwitch + "max_groups_per_host = 0\n"},
      {3, "cnp_policy = \"best\"", kSwitch + "cnp_policy = \"best\"\n"},
      {3, "gate_age = \"1s\"", kSwitch + "gate_age = \"1s\"\n"},
      {3, "'b' can't be reached",
       kSwitch + "[[switch]]\nname = \"b\"\n[[host]]\nname = \"h0\"\naddress = "
                 "\"10.0.0.1\"\nswitch = \"a\"\n"},
      {3, "source_change",
       kSwitch + "[[switch]]\nname = \"b\"\nsource_change = \"host-sync\"\n[[host]]\nname = "
                 "\"h0\"\naddress = \"10.0.0.1\"\nswitch = \"a\"\n[[host]]\nname = \"h1\"\naddress "
                 "= \"10.0.0.2\"\nswitch = \"b\"\n[[trunk]]\nbetween = [\"a\", \"b\"]\n"},
      {4, "joins two switches", kSwitch + "[[trunk]]\nbetween = [\"a\"]\n"},
      {6, "with itself",
       kSwitch + "[[host]]\nname = \"h0\"\naddress = \"10.0.0.1\"\n[[trunk]]\nbetween = [\"a\", "
                 "\"a\"]\n"},
      {1, "a queue of 1KiB", kHost + "link = { queue = \"1KiB\" }\n"},
  };
  for (const Mistake& mistake : mistakes) {
    const auto t = Topology::from_toml(mistake.toml, "net.toml");
    ASSERT_FALSE(t) << mistake.toml;
    EXPECT_EQ(t.error().code, wire::ErrorCode::kInvalid);
    const std::string place = mistake.line == 0 ? "" : ":" + std::to_string(mistake.line);
    EXPECT_THAT(t.error().text, StartsWith("net.toml" + place + ": "));
    EXPECT_THAT(t.error().text, HasSubstr(mistake.word));
  }
}

}  // namespace
}  // namespace cepheus::net
