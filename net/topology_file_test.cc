#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

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
age = "20min"
pending_age = "4s"

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
link = { rate = "1Gbps", delay = "100us", loss = 0.01, queue = "64KiB" }

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
  EXPECT_EQ(t->switches[0].config.pending_age, std::chrono::seconds(4));
  EXPECT_EQ(t->switches[0].config.age, std::chrono::minutes(20));
  EXPECT_EQ(t->switches[1].config.rules.write_mode, WriteMode::kSameKey);
  EXPECT_EQ(t->switches[1].config.rules.cnp_policy, CnpPolicy::kTmcf);
  EXPECT_EQ(t->switches[1].config.cnp_window, std::chrono::milliseconds(1));
  EXPECT_EQ(t->switches[1].config.rules.source_change, SourceChange::kHostSync);
  EXPECT_EQ(t->hosts[0].up.rate.bits_per_second, 10'000'000'000u);
  EXPECT_EQ(t->hosts[0].up.delay, microseconds(2));
  const LinkConfig& slow = t->hosts[1].down;
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
  EXPECT_TRUE(t->hosts[0].up.is_ideal());
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
            "queue, loss, duplicate, reorder, reorder_by, corrupt, ecn, pfc"},
        Mistake{"[fabric]\nzebra = 1\napple = 1\n",
                "net.toml:2: unknown key 'zebra' in [fabric]; known: mtu, icrc, seed, mcst_pool, "
                "mrp_port, hello, one_armed, one_armed_dpdk, key_file, users"},
        Mistake{"[[hosts]]\nname = \"a\"\n",
                "net.toml:1: unknown key 'hosts' in the topology (did you mean 'host'?); known: "
                "fabric, link, switch, host, trunk"},
        Mistake{"[[host]]\nname = \"a\"\naddress = \"10.0.0.1\"\nlink = { los = 1 }\n",
                "net.toml:4: unknown key 'los' in link of [[host]] (did you mean 'loss'?); known: "
                "rate, delay, queue, loss, duplicate, reorder, reorder_by, corrupt, ecn, pfc"},
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

// Round trip: any topology that a file can express reads back as itself.

rc::Gen<LinkConfig> any_link() {
  return rc::gen::exec([] {
    const auto probability = [] { return *rc::gen::inRange(0, 1001) / 1000.0; };
    LinkConfig link;
    link.rate.bits_per_second =
        *rc::gen::element<std::uint64_t>(0, 1, 2'500'000'000, 400'000'000'000);
    link.delay = wire::Duration(*rc::gen::inRange<std::int64_t>(0, 10'000'000'000));
    link.queue_bytes = *rc::gen::inRange<wire::Bytes>(4096 + kFrameOverhead, 1 << 30);
    link.loss = probability();
    link.duplicate = probability();
    link.reorder = probability();
    link.reorder_by = wire::Duration(*rc::gen::inRange<std::int64_t>(0, 1'000'000));
    link.corrupt = probability();
    link.ecn.on = !link.rate.is_unlimited() && *rc::gen::arbitrary<bool>();
    link.pfc.on = !link.rate.is_unlimited() && *rc::gen::arbitrary<bool>();
    if (link.pfc.on) link.pfc.headroom = *rc::gen::inRange<wire::Bytes>(0, 100'000);
    if (!link.ecn.on) return link;
    link.ecn.kmin = *rc::gen::inRange<wire::Bytes>(1, 2000);
    link.ecn.kmax = *rc::gen::inRange<wire::Bytes>(2000, 4000);
    link.ecn.pmax = probability();
    return link;
  });
}

rc::Gen<SwitchConfig> any_switch_config() {
  return rc::gen::exec([] {
    const auto between = [](wire::Duration least, wire::Duration most) {
      return wire::Duration(*rc::gen::inRange(least.count(), most.count()));
    };
    SwitchConfig config;
    config.max_groups = *rc::gen::inRange<std::uint32_t>(0, 5000);
    config.max_groups_per_host = *rc::gen::inRange<std::uint32_t>(1, 5000);
    config.register_rate = *rc::gen::inRange<std::uint32_t>(1, 5000);
    config.max_paths = *rc::gen::inRange<std::uint32_t>(2, 1000);
    config.data_window = *rc::gen::inRange<std::uint32_t>(1, 1 << 22);
    config.max_held = *rc::gen::inRange<std::uint32_t>(0, 1000);
    config.age = between(7min, 1000h);
    config.pending_age = between(4s, 1min);
    config.orphan_age = between(1201ms, 4s);
    config.gate_age = between(6201ms, 1min);
    config.rest = between(201ms, 10s);
    config.confirm_wait = between(0s, 5ms);
    config.feedback_wait = between(0s, 1s);
    config.cnp_window = between(51us, 1s);
    config.rules.source_change = *rc::gen::element(SourceChange::kRebase, SourceChange::kHostSync);
    config.rules.write_mode = *rc::gen::element(WriteMode::kRegions, WriteMode::kPerRequest,
                                                WriteMode::kSameKey, WriteMode::kNone);
    config.rules.cnp_policy =
        *rc::gen::element(CnpPolicy::kAll, CnpPolicy::kWorstPath, CnpPolicy::kTmcf);
    config.buffer.bytes = *rc::gen::element<wire::Bytes>(0, kLargestSize);
    config.buffer.share = *rc::gen::inRange(1, 1000) / 1000.0;
    config.buffer.reserve = *rc::gen::inRange<wire::Bytes>(0, 10'000);
    return config;
  });
}

// Adds switches that trunks join into a tree.
void add_switches(Topology& t, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    SwitchSpec spec;
    spec.config = *any_switch_config();
    spec.name = spec.config.name = "s" + std::to_string(i);
    t.switches.push_back(spec);
    if (i == 0) continue;
    TrunkSpec trunk;
    trunk.a = *rc::gen::inRange<std::size_t>(0, i);
    trunk.b = i;
    trunk.ab = trunk.ba = *any_link();
    t.trunks.push_back(trunk);
  }
}

HostSpec any_host(const Topology& t, std::size_t i) {
  HostSpec host;
  host.name = "h" + std::to_string(i);
  host.address = Ipv4(Ipv4(10, 0, 0, 1).value() + static_cast<std::uint32_t>(i) * 77);
  host.switch_index = *rc::gen::inRange<std::size_t>(0, t.switches.size());
  if (*rc::gen::arbitrary<bool>()) host.interface = "p" + std::to_string(i);
  if (!t.one_armed.empty() && host.interface.empty()) {
    host.any_mac = *rc::gen::arbitrary<bool>();
    if (!host.any_mac) host.mac = wire::mac_for(host.address);
  }
  host.up = host.down = *any_link();
  return host;
}

rc::Gen<Topology> any_topology() {
  return rc::gen::exec([] {
    Topology t;
    t.mtu = *rc::gen::element<std::uint32_t>(256, 512, 1024, 2048, 4096);
    t.icrc_always = *rc::gen::arbitrary<bool>();
    t.seed = *rc::gen::inRange<std::uint64_t>(0, INT64_MAX);
    t.mcst_pool = {Ipv4(198, 18, 0, 0), *rc::gen::inRange(15, 31)};
    t.hello = wire::Duration(*rc::gen::inRange<std::int64_t>(100'000, 1'000'000'000));
    t.mrp_port = *rc::gen::inRange<std::uint16_t>(5000, 60000);
    const auto switches = *rc::gen::inRange<std::size_t>(1, 6);
    if (switches == 1 && *rc::gen::arbitrary<bool>()) t.one_armed = "arm0";
    if (!t.one_armed.empty() && *rc::gen::arbitrary<bool>()) t.one_armed_dpdk = "net_x,iface=arm0";
    add_switches(t, switches);
    const auto hosts = *rc::gen::inRange<std::size_t>(1, 8);
    for (std::size_t i = 0; i < hosts; ++i) t.hosts.push_back(any_host(t, i));
    t.assign_link_seeds();
    return t;
  });
}

void expect_equal(const LinkConfig& a, const LinkConfig& b) {
  RC_ASSERT(a.rate.bits_per_second == b.rate.bits_per_second);
  RC_ASSERT(a.delay == b.delay);
  RC_ASSERT(a.queue_bytes == b.queue_bytes);
  RC_ASSERT(a.loss == b.loss);
  RC_ASSERT(a.duplicate == b.duplicate);
  RC_ASSERT(a.reorder == b.reorder);
  RC_ASSERT(a.reorder_by == b.reorder_by);
  RC_ASSERT(a.corrupt == b.corrupt);
  RC_ASSERT(a.ecn == b.ecn);
  RC_ASSERT(a.pfc == b.pfc);
  RC_ASSERT(a.seed == b.seed);
}

void expect_equal(const SwitchConfig& a, const SwitchConfig& b) {
  RC_ASSERT(a.name == b.name);
  RC_ASSERT(a.max_groups == b.max_groups);
  RC_ASSERT(a.max_groups_per_host == b.max_groups_per_host);
  RC_ASSERT(a.register_rate == b.register_rate);
  RC_ASSERT(a.max_paths == b.max_paths);
  RC_ASSERT(a.data_window == b.data_window);
  RC_ASSERT(a.max_held == b.max_held);
  RC_ASSERT(a.age == b.age);
  RC_ASSERT(a.pending_age == b.pending_age);
  RC_ASSERT(a.orphan_age == b.orphan_age);
  RC_ASSERT(a.gate_age == b.gate_age);
  RC_ASSERT(a.feedback_wait == b.feedback_wait);
  RC_ASSERT(a.rest == b.rest);
  RC_ASSERT(a.confirm_wait == b.confirm_wait);
  RC_ASSERT(a.rules.source_change == b.rules.source_change);
  RC_ASSERT(a.rules.write_mode == b.rules.write_mode);
  RC_ASSERT(a.rules.cnp_policy == b.rules.cnp_policy);
  RC_ASSERT(a.cnp_window == b.cnp_window);
  RC_ASSERT(a.buffer == b.buffer);
}

RC_GTEST_PROP(TopologyFile, ReadsBackWhatItWrites, ()) {
  const Topology t = *any_topology();
  const auto back = Topology::from_toml(t.to_toml());
  if (!back) RC_FAIL(back.error().text + "\n" + t.to_toml());
  RC_ASSERT(back->mtu == t.mtu);
  RC_ASSERT(back->icrc_always == t.icrc_always);
  RC_ASSERT(back->seed == t.seed);
  RC_ASSERT(back->mcst_pool.base == t.mcst_pool.base);
  RC_ASSERT(back->mcst_pool.length == t.mcst_pool.length);
  RC_ASSERT(back->mrp_port == t.mrp_port);
  RC_ASSERT(back->hello == t.hello);
  RC_ASSERT(back->one_armed == t.one_armed);
  RC_ASSERT(back->one_armed_dpdk == t.one_armed_dpdk);
  RC_ASSERT(back->switches.size() == t.switches.size());
  for (std::size_t i = 0; i < t.switches.size(); ++i) {
    RC_ASSERT(back->switches[i].name == t.switches[i].name);
    expect_equal(back->switches[i].config, t.switches[i].config);
  }
  RC_ASSERT(back->hosts.size() == t.hosts.size());
  for (std::size_t i = 0; i < t.hosts.size(); ++i) {
    RC_ASSERT(back->hosts[i].name == t.hosts[i].name);
    RC_ASSERT(back->hosts[i].address == t.hosts[i].address);
    RC_ASSERT(back->hosts[i].switch_index == t.hosts[i].switch_index);
    RC_ASSERT(back->hosts[i].interface == t.hosts[i].interface);
    RC_ASSERT(back->hosts[i].mac == t.hosts[i].mac);
    RC_ASSERT(back->hosts[i].any_mac == t.hosts[i].any_mac);
    expect_equal(back->hosts[i].up, t.hosts[i].up);
    expect_equal(back->hosts[i].down, t.hosts[i].down);
  }
  RC_ASSERT(back->trunks.size() == t.trunks.size());
  for (std::size_t i = 0; i < t.trunks.size(); ++i) {
    RC_ASSERT(back->trunks[i].a == t.trunks[i].a);
    RC_ASSERT(back->trunks[i].b == t.trunks[i].b);
    expect_equal(back->trunks[i].ab, t.trunks[i].ab);
    expect_equal(back->trunks[i].ba, t.trunks[i].ba);
  }
}

}  // namespace
}  // namespace cepheus::net
