#include <gtest/gtest.h>

#include <chrono>

#include "net/topology.h"
#include "net/units.h"

namespace cepheus::net {
namespace {

using std::chrono::microseconds;
using namespace std::chrono_literals;

constexpr const char* kTwoLeaves = R"([fabric]
mtu = 1024
icrc = "always"
seed = 7
mcst_pool = "198.19.0.0/16"
mrp_port = 18517
hello = "50ms"
key_file = "/etc/cepheus/key"
users = ["alice", "1001"]

[link]
rate = "10Gbps"
delay = "2us"

[[switch]]
name = "s0"
max_groups = 0
max_groups_per_host = 16
register_rate = 50
probe_rate = 0
age = "20min"
pending_age = "4s"
source_change = "host-sync"

[[switch]]
name = "s1"
write_mode = "same-key"
cnp_policy = "tmcf"
cnp_window = "1ms"
source_change = "host-sync"

[[host]]
name = "h0"
address = "10.0.0.1"
switch = "s0"

[[host]]
name = "h1"
address = "10.0.0.2"
switch = "s1"
interface = "p1"
link = { rate = "1Gbps", delay = "100us", mtu = 512, loss = 0.01, queue = "64KiB" }

[[trunk]]
between = ["s0", "s1"]
link = { rate = "25Gbps", ecn = { kmin = "30KB", pmax = 0.5 }, reorder = 0.5, reorder_by = "1ms", duplicate = 1, corrupt = 0.25 }
)";

TEST(TopologyFile, ReadsEveryKey) {
  const auto t = Topology::from_toml(kTwoLeaves);
  ASSERT_TRUE(t) << t.error().text;
  EXPECT_EQ(t->mtu, 1024u);
  EXPECT_TRUE(t->icrc_always);
  EXPECT_EQ(t->seed, 7u);
  EXPECT_EQ(t->mcst_pool.base, Ipv4(198, 19, 0, 0));
  EXPECT_EQ(t->mcst_pool.length, 16);
  EXPECT_EQ(t->mrp_port, 18517);
  EXPECT_EQ(t->hello, std::chrono::milliseconds(50));
  EXPECT_EQ(t->key_file, "/etc/cepheus/key");
  EXPECT_EQ(t->users, (std::vector<std::string>{"alice", "1001"}));
  EXPECT_EQ(t->switches[0].config.max_groups, 0u);
  EXPECT_EQ(t->switches[0].config.max_groups_per_host, 16u);
  EXPECT_EQ(t->switches[0].config.register_rate, 50u);
  EXPECT_EQ(t->switches[0].config.probe_rate, 0u);
  EXPECT_EQ(t->switches[0].config.pending_age, std::chrono::seconds(4));
  EXPECT_EQ(t->switches[0].config.age, std::chrono::minutes(20));
  EXPECT_EQ(t->switches[1].config.rules.write_mode, WriteMode::kSameKey);
  EXPECT_EQ(t->switches[1].config.rules.cnp_policy, CnpPolicy::kTmcf);
  EXPECT_EQ(t->switches[1].config.cnp_window, std::chrono::milliseconds(1));
  EXPECT_EQ(t->switches[1].config.rules.source_change, SourceChange::kHostSync);
  EXPECT_EQ(t->hosts[0].up.rate.bits_per_second, 10'000'000'000u);
  EXPECT_EQ(t->hosts[0].up.delay, microseconds(2));
  const LinkConfig& slow = t->hosts[1].down;
  EXPECT_EQ(slow.mtu, 512u);
  EXPECT_EQ(t->hosts[1].switch_index, 1u);
  EXPECT_EQ(t->hosts[0].interface, "");
  EXPECT_EQ(t->hosts[1].interface, "p1");
  EXPECT_EQ(slow.rate.bits_per_second, 1'000'000'000u);
  EXPECT_EQ(slow.delay, microseconds(100));
  EXPECT_EQ(slow.loss, 0.01);
  EXPECT_EQ(slow.queue_bytes, 64u << 10);
  const LinkConfig& trunk = t->trunks[0].ba;
  EXPECT_EQ(trunk.rate.bits_per_second, 25'000'000'000u);
  EXPECT_TRUE(trunk.ecn.on);
  EXPECT_EQ(trunk.ecn.kmin, 30'000u);
  EXPECT_EQ(trunk.ecn.kmax, 0u) << "by the rate";
  EXPECT_EQ(trunk.ecn.pmax, 0.5);
  EXPECT_FALSE(slow.ecn.on);
  EXPECT_EQ(trunk.delay, microseconds(2)) << "the default of [link]";
  EXPECT_EQ(trunk.reorder, 0.5);
  EXPECT_EQ(trunk.reorder_by, microseconds(1000));
  EXPECT_EQ(trunk.duplicate, 1);
  EXPECT_EQ(trunk.corrupt, 0.25);
}

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
  EXPECT_EQ(t.error().text,
            "can't read topology file /nonexistent/fabric.toml; check its name and permissions");
}

struct Mistake {
  const char* toml;
  const char* error;
};

class Mistakes : public testing::TestWithParam<Mistake> {};

TEST_P(Mistakes, AreReportedWithTheirLineAndRemedy) {
  const auto t = Topology::from_toml(GetParam().toml, "net.toml");
  ASSERT_FALSE(t);
  EXPECT_EQ(t.error().code, wire::ErrorCode::kInvalid);
  EXPECT_EQ(t.error().text, GetParam().error);
}

INSTANTIATE_TEST_SUITE_P(
    Quantities, Mistakes,
    testing::Values(
        Mistake{
            "[link]\nrate = 10\n",
            "net.toml:2: rate = 10 has no unit; write rate = \"10Gbps\" (units: bps, Kbps, Mbps, "
            "Gbps, Tbps; or \"unlimited\"), in [link]"},
        Mistake{
            "[link]\nrate = \"10\"\n",
            "net.toml:2: rate = '10' is not a number with a unit; write rate = \"10Gbps\" (units: "
            "bps, Kbps, Mbps, Gbps, Tbps; or \"unlimited\"), in [link]"},
        Mistake{"[link]\ndelay = 2.5\n",
                "net.toml:2: delay = 2.5 has no unit; write delay = \"2us\" (units: ns, us, ms, s, "
                "min; at most 525600min), in [link]"},
        Mistake{
            "[link]\nqueue = true\n",
            "net.toml:2: queue = true is not a quantity; write queue = \"4MiB\" (units: B, KB, MB, "
            "GB, KiB, MiB, GiB; at most 1024GiB), in [link]"},
        Mistake{"[link]\nloss = 1.5\n",
                "net.toml:2: loss = 1.5 is not a probability; write a number from 0.0 to 1.0, in "
                "[link]"},
        Mistake{"[fabric]\nmtu = 9000\n",
                "net.toml:2: mtu = 9000 is out of range; write a whole number from 256 to 4096, in "
                "[fabric]"},
        Mistake{"[fabric]\nmtu = 1500\n[[host]]\nname = \"a\"\naddress = \"10.0.0.1\"\n",
                "net.toml:1: mtu = 1500 is not a path MTU; write 256, 512, 1024, 2048 or 4096"},
        Mistake{"[fabric]\nicrc = \"never\"\n",
                "net.toml:2: icrc = \"never\" is unknown; write \"deferred\" or \"always\", in "
                "[fabric]"},
        Mistake{"[fabric]\nmcst_pool = \"198.18.0.0\"\n",
                "net.toml:2: mcst_pool = \"198.18.0.0\" is not an IPv4 prefix; write mcst_pool = "
                "\"198.18.0.0/15\", in [fabric]"},
        Mistake{"[fabric]\nmcst_pool = \"224.0.0.0/8\"\n[[host]]\nname = \"a\"\naddress = "
                "\"10.0.0.1\"\n",
                "net.toml:1: mcst_pool holds addresses that hosts treat specially (0/8, 127/8, "
                "224/3); write a unicast prefix such as \"198.18.0.0/15\""},
        Mistake{"[fabric]\nhello = \"5us\"\n[[host]]\nname = \"a\"\naddress = \"10.0.0.1\"\n",
                "net.toml:1: hello = \"5us\" is below 100us: no switch keeps that up; write hello "
                "= \"25ms\", or \"0ns\" for none"},
        Mistake{"[fabric]\nhello = \"1s\"\n[[host]]\nname = \"a\"\naddress = \"10.0.0.1\"\n",
                "net.toml:1: hello = \"1s\" is not below 1s: senders would give their group up "
                "before 8 unanswered HELLOs show that a trunk is silent; write hello = \"25ms\", "
                "or \"0ns\" for none"},
        Mistake{"[fabric]\nmrp_port = 4791\n[[host]]\nname = \"a\"\naddress = \"10.0.0.1\"\n",
                "net.toml:1: mrp_port = 4791 can't be used; write a UDP port other than 0 and "
                "RoCE's 4791"}));

INSTANTIATE_TEST_SUITE_P(
    Keys, Mistakes,
    testing::Values(
        Mistake{
            "[link]\n\nrat = \"1Gbps\"\n",
            "net.toml:3: unknown key 'rat' in [link] (did you mean 'rate'?); known: rate, delay, "
            "mtu, queue, loss, duplicate, reorder, reorder_by, corrupt, ecn, pfc"},
        Mistake{"[fabric]\nzebra = 1\napple = 1\n",
                "net.toml:2: unknown key 'zebra' in [fabric]; known: mtu, icrc, seed, mcst_pool, "
                "mrp_port, hello, one_armed, one_armed_dpdk, key_file, users"},
        Mistake{"[[hosts]]\nname = \"a\"\n",
                "net.toml:1: unknown key 'hosts' in the topology (did you mean 'host'?); known: "
                "fabric, link, switch, host, trunk"},
        Mistake{"[[host]]\nname = \"a\"\naddress = \"10.0.0.1\"\nlink = { los = 1 }\n",
                "net.toml:4: unknown key 'los' in link of [[host]] (did you mean 'loss'?); known: "
                "rate, delay, mtu, queue, loss, duplicate, reorder, reorder_by, corrupt, ecn, pfc"},
        Mistake{
            "[host]\nname = \"a\"\n",
            "net.toml:1: host is not a list of tables; write [[host]], in two brackets, for each "
            "one, in the topology"},
        Mistake{"fabric = 3\n",
                "net.toml:1: fabric = 3 is not a table; write fabric = { ... }, in the topology"},
        Mistake{"[link\n",
                "net.toml:1: Error while parsing table header: expected ']', saw '\\n'"}));

INSTANTIATE_TEST_SUITE_P(
    Nodes, Mistakes,
    testing::Values(
        Mistake{"", "net.toml: no host; add [[host]] with a name and an address"},
        Mistake{"[[host]]\naddress = \"10.0.0.1\"\n",
                "net.toml:1: no name; write name = \"h0\", in [[host]]"},
        Mistake{"[[host]]\nname = \"a\"\n",
                "net.toml:1: no address; write address = \"10.0.0.1\", in [[host]]"},
        Mistake{"[[host]]\nname = 4\n",
                "net.toml:2: name = 4 is not a text; write name = \"...\", in [[host]]"},
        Mistake{"[[host]]\nname = \"a\"\naddress = \"10.0.0\"\n",
                "net.toml:3: address = \"10.0.0\" is not an IPv4 address; write address = "
                "\"10.0.0.1\", "
                "in [[host]]"},
        Mistake{"[[host]]\nname = \"4\"\naddress = \"10.0.0.1\"\n",
                "net.toml:1: name '4' starts with no letter, or holds more than letters, digits, "
                "'-', '_' and '.' (at most 63), in [[host]]"},
        Mistake{"[[host]]\nname = \"s0\"\naddress = \"10.0.0.1\"\n",
                "net.toml:1: name 's0' is taken already; hosts and switches need different names, "
                "in [[host]]"},
        Mistake{"[[host]]\nname = \"a\"\naddress = \"10.0.0.1\"\n[[host]]\nname = \"b\"\naddress = "
                "\"10.0.0.1\"\n",
                "net.toml:4: address 10.0.0.1 belongs to 'a' already; each host needs its own, in "
                "[[host]]"},
        Mistake{"[[host]]\nname = \"a\"\naddress = \"10.0.0.1\"\ninterface = \"p0\"\n"
                "[[host]]\nname = \"b\"\naddress = \"10.0.0.2\"\ninterface = \"p0\"\n",
                "net.toml:5: interface 'p0' leads to 'a' already; each host needs its own, in "
                "[[host]]"},
        Mistake{
            "[fabric]\nmtu = 1024\n[[host]]\nname = \"a\"\naddress = \"10.0.0.1\"\nlink = { mtu = "
            "2048 }\n",
            "net.toml:3: mtu = 2048 of a link is not a path MTU, or is larger than the fabric's; "
            "write 256, 512, 1024, 2048 or 4096, at most 1024, in [[host]]"},
        Mistake{"[[host]]\nname = \"a\"\naddress = \"10.0.0.1\"\nlink = { delay = \"61min\" }\n",
                "net.toml:1: a delay of more than 60min; write at most delay = "
                "\"60min\", in [[host]]"},
        Mistake{"[fabric]\none_armed = \"p0\"\n"
                "[[host]]\nname = \"a\"\naddress = \"10.0.0.1\"\ninterface = \"p0\"\n",
                "net.toml:3: interface 'p0' leads to 'all hosts without one' already; each host "
                "needs its own, in [[host]]"},
        Mistake{"[fabric]\none_armed = \"no name\"\n[[host]]\nname = \"a\"\naddress = "
                "\"10.0.0.1\"\n",
                "net.toml:1: one_armed = 'no name' is not an interface's name; ip link shows them"},
        Mistake{
            "[fabric]\none_armed = \"p0\"\n[[switch]]\nname = \"s0\"\n[[switch]]\nname = "
            "\"s1\"\n[[host]]\nname = \"a\"\naddress = \"10.0.0.1\"\nswitch = \"s0\"\n",
            "net.toml:1: one_armed takes one switch, and there are 2: hosts behind one interface "
            "are all next to it; leave out all but one"},
        Mistake{"[fabric]\none_armed = \"p0\"\n[[host]]\nname = \"a\"\naddress = "
                "\"10.0.0.1\"\nmac = \"02:00\"\n",
                "net.toml:6: mac = \"02:00\" is not a MAC address; write mac = "
                "\"02:00:00:00:00:01\", or \"any\", in [[host]]"},
        Mistake{"[[host]]\nname = \"a\"\naddress = \"10.0.0.1\"\ninterface = \"p0\"\nmac = "
                "\"any\"\n",
                "net.toml:1: mac is for hosts behind the one-armed interface, and 'a' has an "
                "interface of its own; take one of the two out, in [[host]]"},
        Mistake{
            "[[host]]\nname = \"a\"\naddress = \"10.0.0.1\"\ninterface = "
            "\"a-name-too-long-for-any\"\n",
            "net.toml:1: interface 'a-name-too-long-for-any' is not an interface's name; ip link "
            "shows them, in [[host]]"},
        Mistake{"[[host]]\nname = \"a\"\naddress = \"224.0.0.1\"\n",
                "net.toml:1: address 224.0.0.1 is not a host's address; write one such as "
                "\"10.0.0.1\", "
                "in [[host]]"},
        Mistake{"[[host]]\nname = \"a\"\naddress = \"198.18.3.4\"\n",
                "net.toml:1: address 198.18.3.4 lies in the pool of group addresses; choose one "
                "outside mcst_pool, in [[host]]"},
        Mistake{
            "[[switch]]\nname = \"leaf\"\n[[host]]\nname = \"a\"\naddress = "
            "\"10.0.0.1\"\nswitch = \"laef\"\n",
            "net.toml:6: there is no switch 'laef' (did you mean 'leaf'?); add a [[switch]] with "
            "that name, in [[host]]"},
        Mistake{"[[switch]]\nname = \"a\"\n[[switch]]\nname = \"b\"\n[[host]]\nname = "
                "\"h0\"\naddress = \"10.0.0.1\"\n",
                "net.toml:5: there are several switches; name the host's with switch = \"a\", "
                "in [[host]]"},
        Mistake{"[[switch]]\nmax_groups = 5\n",
                "net.toml:1: no name; write name = \"s0\", in [[switch]]"},
        Mistake{"[[switch]]\nname = \"a\"\nmax_paths = 65536\n",  // beyond the largest path index
                "net.toml:3: max_paths = 65536 is out of range; write a whole number from 2 to "
                "65535, in [[switch]]"},
        Mistake{"[[switch]]\nname = \"a\"\nregister_rate = 0\n",
                "net.toml:3: register_rate = 0 is out of range; write a whole number from 1 to "
                "1000000, in [[switch]]"},
        Mistake{
            "[[switch]]\nname = \"a\"\nmax_groups_per_host = 0\n",
            "net.toml:3: max_groups_per_host = 0 is out of range; write a whole number from 1 to "
            "1048576, in [[switch]]"},
        Mistake{"[[switch]]\nname = \"a\"\ncnp_policy = \"best\"\n",
                "net.toml:3: cnp_policy = \"best\" is unknown; write \"all\" or \"worst-path\" or "
                "\"tmcf\", in [[switch]]"},
        Mistake{"[[switch]]\nname = \"a\"\ngate_age = \"1s\"\n",
                "net.toml:3: gate_age = \"1s\" is not above 6200ms: a newcomer would be refused "
                "before the leader has evicted a silent member; write gate_age = \"10s\", or leave "
                "it out, in [[switch]]"},
        Mistake{"[[switch]]\nname = \"a\"\n[[switch]]\nname = \"b\"\n[[host]]\nname = "
                "\"h0\"\naddress = \"10.0.0.1\"\nswitch = \"a\"\n",
                "net.toml:3: 'b' can't be reached from 'a'; join them with a [[trunk]] between = "
                "[\"a\", \"b\"], in [[switch]]"},
        Mistake{
            "[[switch]]\nname = \"a\"\n[[switch]]\nname = \"b\"\nsource_change = \"host-sync\"\n"
            "[[host]]\nname = \"h0\"\naddress = \"10.0.0.1\"\nswitch = \"a\"\n"
            "[[host]]\nname = \"h1\"\naddress = \"10.0.0.2\"\nswitch = \"b\"\n"
            "[[trunk]]\nbetween = [\"a\", \"b\"]\n",
            "net.toml:3: 'b' has source_change = \"host-sync\" and 'a' has \"rebase\": members "
            "at both could form no group; write the same for all switches with hosts, in "
            "[[switch]]"},
        Mistake{"[[switch]]\nname = \"a\"\n[[trunk]]\nbetween = [\"a\"]\n",
                "net.toml:4: a trunk joins two switches; write between = [\"s0\", \"s1\"], in "
                "[[trunk]]"},
        Mistake{"[[switch]]\nname = \"a\"\n[[host]]\nname = \"h0\"\naddress = "
                "\"10.0.0.1\"\n[[trunk]]\nbetween = [\"a\", \"a\"]\n",
                "net.toml:6: a trunk joins two different switches, not 'a' with itself, in "
                "[[trunk]]"},
        Mistake{"[[host]]\nname = \"a\"\naddress = \"10.0.0.1\"\nlink = { queue = \"1KiB\" }\n",
                "net.toml:1: a queue of 1KiB holds no frame; write queue = \"4224B\" or more, in "
                "[[host]]"}));

}  // namespace
}  // namespace cepheus::net
