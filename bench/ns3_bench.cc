// ns-3's speed beside the simulator's: sim_bench's permutation as plain UDP over the same links and
// the same fat-tree, without acknowledgements, checksums or traffic control.
//
//     ns3_bench PORTS BYTES
//
// A line of JSON, as sim_bench's. Each packet crosses six links: its receiver is in another pod.
#include <ns3/applications-module.h>
#include <ns3/core-module.h>
#include <ns3/internet-module.h>
#include <ns3/network-module.h>
#include <ns3/nix-vector-routing-module.h>
#include <ns3/point-to-point-module.h>
#include <ns3/traffic-control-module.h>
#include <sys/resource.h>

#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

namespace {

// CPU seconds of this process: other processes do not count.
double core_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

constexpr std::uint32_t kPayload = 4096;
constexpr unsigned kHops = 6;
constexpr std::uint16_t kPort = 9;

// Edge and aggregation switches pod by pod, then the core.
class FatTree {
 public:
  explicit FatTree(unsigned ports) : half_(ports / 2) {
    hosts_.Create(ports * half_ * half_);
    edges_.Create(ports * half_);
    aggregates_.Create(ports * half_);
    cores_.Create(half_ * half_);
    link_.SetDeviceAttribute("DataRate", ns3::StringValue("100Gbps"));
    link_.SetDeviceAttribute("Mtu", ns3::UintegerValue(9000));
    link_.SetChannelAttribute("Delay", ns3::StringValue("1us"));
    link_.SetQueue("ns3::DropTailQueue", "MaxSize", ns3::StringValue("1000000p"));
    stack_.SetRoutingHelper(ns3::Ipv4NixVectorHelper());  // its fastest: a way once a flow
    stack_.InstallAll();
    addresses_.SetBase("10.0.0.0", "255.255.255.252");
    for (unsigned i = 0; i < hosts_.GetN(); ++i) {
      host_addresses_.push_back(join(hosts_.Get(i), edges_.Get(i / half_)));
    }
    for (unsigned pod = 0; pod < ports; ++pod) {
      for (unsigned e = 0; e < half_; ++e) {
        for (unsigned a = 0; a < half_; ++a) {
          join(edges_.Get(pod * half_ + e), aggregates_.Get(pod * half_ + a));
        }
      }
      for (unsigned a = 0; a < half_; ++a) {
        for (unsigned c = 0; c < half_; ++c) {
          join(aggregates_.Get(pod * half_ + a), cores_.Get(a * half_ + c));
        }
      }
    }
  }

  unsigned size() const { return hosts_.GetN(); }
  ns3::Ptr<ns3::Node> host(unsigned i) const { return hosts_.Get(i); }
  ns3::Ipv4Address address(unsigned i) const { return host_addresses_[i]; }

 private:
  // The first one's address on the link.
  ns3::Ipv4Address join(const ns3::Ptr<ns3::Node>& a, const ns3::Ptr<ns3::Node>& b) {
    const ns3::NetDeviceContainer devices = link_.Install(a, b);
    const ns3::Ipv4InterfaceContainer given = addresses_.Assign(devices);
    traffic_.Uninstall(devices);
    addresses_.NewNetwork();
    return given.GetAddress(0);
  }

  const unsigned half_;
  ns3::NodeContainer hosts_, edges_, aggregates_, cores_;
  ns3::PointToPointHelper link_;
  ns3::InternetStackHelper stack_;
  ns3::TrafficControlHelper traffic_;
  ns3::Ipv4AddressHelper addresses_;
  std::vector<ns3::Ipv4Address> host_addresses_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: ns3_bench PORTS BYTES\n");
    return 2;
  }
  const auto begin = core_seconds();
  FatTree tree(static_cast<unsigned>(std::stoul(argv[1])));
  const auto packets = static_cast<std::uint32_t>(std::stoull(argv[2]) / kPayload);
  // At the rate of a link, with ns-3's headers.
  const std::uint64_t wire_bytes = kPayload + 30;
  ns3::ApplicationContainer sinks, sources;
  for (unsigned i = 0; i < tree.size(); ++i) {
    ns3::UdpServerHelper sink(kPort);
    sinks.Add(sink.Install(tree.host(i)));
    ns3::UdpClientHelper source(tree.address((i + tree.size() / 2) % tree.size()), kPort);
    source.SetAttribute("MaxPackets", ns3::UintegerValue(packets));
    source.SetAttribute("Interval", ns3::TimeValue(ns3::NanoSeconds(wire_bytes * 8 / 100 + 1)));
    source.SetAttribute("PacketSize", ns3::UintegerValue(kPayload));
    sources.Add(source.Install(tree.host(i)));
  }
  sources.Start(ns3::NanoSeconds(0));
  const double built = core_seconds() - begin;
  const auto sending = core_seconds();
  ns3::Simulator::Run();
  const double took = core_seconds() - sending;
  std::uint64_t received = 0;
  for (unsigned i = 0; i < sinks.GetN(); ++i) {
    received += ns3::DynamicCast<ns3::UdpServer>(sinks.Get(i))->GetReceived();
  }
  const double virtual_us = ns3::Simulator::Now().GetSeconds() * 1e6;
  ns3::Simulator::Destroy();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  if (received != std::uint64_t{packets} * tree.size()) {
    std::fprintf(stderr, "ns3_bench: %llu of %llu packets arrived\n",
                 static_cast<unsigned long long>(received),
                 static_cast<unsigned long long>(std::uint64_t{packets} * tree.size()));
    return 1;
  }
  std::printf(
      "{\"case\": \"permutation\", \"hosts\": %u, \"built\": %.6f, \"set_up\": 0, \"seconds\": "
      "%.6f, "
      "\"hops\": %llu, \"virtual_us\": %.3f, \"rss_kib\": %ld}\n",
      tree.size(), built, took, static_cast<unsigned long long>(received * kHops), virtual_us,
      usage.ru_maxrss);
  return 0;
}
