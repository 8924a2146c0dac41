// Opening begins so: check slot sizes, start DPDK once in the process, find the device, choose its
// MTU. Then it maps the payload pool, isolates the device, sets up queues and adds the rule for
// groups. Any failure refuses the interface with the step's name. DPDK binds the thread to a core;
// that is undone.
//
// A copy in pieces holds a reference to its payload until the device has sent it. kBurst frames
// wait at most; then send() returns kDropEgressFull. Virtual devices are removed at the end; a
// device of the bus is closed for good.
#include "switch-emulator/ports/dpdk_driver.h"

#include <pthread.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_flow.h>
#include <rte_mbuf.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "wire/icrc.h"

namespace cepheus::fabric {
namespace {

using wire::Icrc;
using wire::kIcrcSize;

constexpr std::uint16_t kBurst = 32;  // packets per call, received and sent
constexpr std::uint16_t kRing = 1024;
constexpr unsigned kWholePackets = 4096 - 1;    // received ones, and copies in one piece
constexpr unsigned kPieces = 3 * 2 * 1024 - 1;  // of copies: a full ring, and one more
constexpr unsigned kCache = 250;
constexpr std::uint16_t kMostPieces = 3;  // of a copy
constexpr std::uint16_t kPieceBytes = RTE_PKTMBUF_HEADROOM + 128;

tl::unexpected<wire::Error> refused(const std::string& device, const std::string& what, int error) {
  return wire::unavailable("DPDK device " + device + ": " + what + ": " +
                           rte_strerror(std::abs(error)));
}

constexpr std::uint32_t kPacketHeader = 64;  // before a frame in a slot of a packet ring

// The number behind "`name`=" in a device's text, or `otherwise`.
std::uint32_t option_of(const std::string& device, const std::string& name,
                        std::uint32_t otherwise) {
  const std::size_t at = device.find("," + name + "=");
  if (at == std::string::npos) return otherwise;
  return static_cast<std::uint32_t>(std::strtoul(&device[at + name.size() + 2], nullptr, 10));
}

bool is_pci(const std::string& device) { return device.find(':') != std::string::npos; }
std::string name_of(const std::string& device) { return device.substr(0, device.find(',')); }

// Once per process. DPDK binds the thread to a core, which is undone.
int start_dpdk(const std::string& device) {
  static bool started = false;
  if (started) return 0;
  cpu_set_t cores;
  pthread_getaffinity_np(pthread_self(), sizeof cores, &cores);
  unsigned core = 0;
  while (core + 1 < CPU_SETSIZE && !CPU_ISSET(core, &cores)) ++core;
  std::vector<std::string> words{"cepheus-switch",    "--no-telemetry", "--no-shconf",
                                 "--log-level=error", "--iova-mode=va", "-l",
                                 std::to_string(core)};
  if (is_pci(device)) {
    words.insert(words.end(), {"--in-memory", "-a", device});
  } else {
    words.insert(words.end(), {"--no-pci", "--no-huge", "-m", "128"});
  }
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  const int done = rte_eal_init(static_cast<int>(arguments.size()), arguments.data());
  pthread_setaffinity_np(pthread_self(), sizeof cores, &cores);
  started = done >= 0;
  return started ? 0 : rte_errno;
}

struct FreePool {
  void operator()(rte_mempool* pool) const { rte_mempool_free(pool); }
};
using Pool = std::unique_ptr<rte_mempool, FreePool>;

// Behind a piece with a payload: releases it.
struct Shared {
  rte_mbuf_ext_shared_info info;
  PayloadPools* pools;
  wire::BufferRef ref;
};

void give_back(void*, void* opaque) {
  const auto* shared = static_cast<const Shared*>(opaque);
  shared->pools->drop(shared->ref);
}

class Driver final : public InterfaceDriver {
 public:
  Driver(std::string device, PayloadPools& pools, std::uint32_t pool)
      : device_(std::move(device)), pools_(pools), pool_(pool) {}

  ~Driver() override {
    for (std::uint16_t n = first_received_; n < received_count_; ++n) {
      rte_pktmbuf_free(received_[n]);
    }
    for (std::uint16_t n = 0; n < waiting_count_; ++n) rte_pktmbuf_free(waiting_[n]);
    if (port_ == RTE_MAX_ETHPORTS) return;
    rte_eth_dev_info info{};
    const bool is_there = rte_eth_dev_info_get(port_, &info) == 0;
    rte_eth_dev_stop(port_);
    if (is_there && !is_pci(device_)) {
      rte_dev_remove(info.device);
      return;
    }
    rte_eth_dev_close(port_);
    if (!is_there) return;  // all of it is unmapped
    const auto memory = pools_.memory(pool_);
    rte_dev_dma_unmap(info.device, memory.data(), iova_of(memory), memory.size());
    rte_extmem_unregister(memory.data(), memory.size());
  }

  wire::Result<void> open(std::uint32_t largest_frame, const wire::Ipv4Prefix& groups) {
    largest_frame_ = largest_frame;
    if (auto fit = check_slots(); !fit) return fit;
    if (const int error = start_dpdk(device_); error != 0) {
      return refused(device_, "DPDK does not start (hugepages? rights?)", error);
    }
    if (!is_pci(device_)) {
      if (const int error = rte_dev_probe(device_.c_str()); error != 0) {
        return refused(device_, "it can't be made (is its driver installed, its interface there?)",
                       error);
      }
    }
    if (const int error = rte_eth_dev_get_port_by_name(name_of(device_).c_str(), &port_);
        error != 0) {
      port_ = RTE_MAX_ETHPORTS;
      return refused(device_, "DPDK has no such port", error);
    }
    return set_up(groups);
  }

  int fd() const override { return -1; }
  void clear_error() override {}

  std::optional<Received> next() override {
    if (first_received_ == received_count_) {
      first_received_ = 0;
      received_count_ = rte_eth_rx_burst(port_, 0, received_.data(), kBurst);
      if (received_count_ == 0) return std::nullopt;
    }
    const rte_mbuf* packet = received_[first_received_];
    Received received;
    received.bytes = {rte_pktmbuf_mtod(packet, std::uint8_t*), rte_pktmbuf_data_len(packet)};
    received.truncated = packet->nb_segs > 1;
    if ((packet->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0) received.vlan_tag = packet->vlan_tci;
    received.losing = received_count_ == kBurst && first_received_ == 0;  // there may be losses
    return received;
  }
  void release() override { rte_pktmbuf_free(received_[first_received_++]); }
  bool has_received() const override { return first_received_ < received_count_; }
  std::uint32_t take_dropped() override {
    rte_eth_stats statistics{};
    if (rte_eth_stats_get(port_, &statistics) != 0) return 0;
    const std::uint64_t all = statistics.imissed + statistics.rx_nombuf;
    return static_cast<std::uint32_t>(all - std::exchange(dropped_, all));
  }

  std::optional<PortCounter> send(const wire::Frame& frame, const wire::Mac& from,
                                  const wire::Mac& to) override {
    if (waiting_count_ == kBurst) return PortCounter::kDropEgressFull;
    const bool is_shared =
        sends_pieces_ && frame.ref != wire::kNoBuffer && PayloadPools::pool_of(frame.ref) == pool_;
    if (frame.size() > largest_frame_) return PortCounter::kDropOversize;
    rte_mbuf* packet = is_shared ? in_pieces(frame) : whole(frame);
    if (packet == nullptr) return PortCounter::kDropEgressFull;
    set_macs({rte_pktmbuf_mtod(packet, std::uint8_t*), rte_pktmbuf_data_len(packet)}, from, to);
    waiting_[waiting_count_++] = packet;
    pushed_ = true;
    return std::nullopt;
  }

  // A port with its link down accepts frames and drops them, by its own counters.
  std::uint32_t kick() override {
    pushed_ = false;
    const std::uint16_t sent = rte_eth_tx_burst(port_, 0, waiting_.data(), waiting_count_);
    waiting_count_ = static_cast<std::uint16_t>(waiting_count_ - sent);
    std::copy_n(waiting_.begin() + sent, waiting_count_, waiting_.begin());
    return 0;
  }
  bool has_pushed() const override { return pushed_; }
  bool is_pending() const override { return waiting_count_ > 0; }
  // The frames that were queued last are just before the tail, so others are as far behind it as
  // the ring is full. Drivers that can't tell have none.
  bool is_filling() const override {
    return rte_eth_tx_descriptor_status(port_, 0, static_cast<std::uint16_t>(tx_ - tx_ / 4)) ==
           RTE_ETH_TX_DESC_FULL;
  }

 private:
  // net_af_packet drops frames that are longer than its slots, and its counters don't say so.
  wire::Result<void> check_slots() const {
    const std::uint32_t needed = largest_frame_ + kPacketHeader;
    const std::uint32_t slot = option_of(device_, "framesz", 2048);
    if (!device_.starts_with("net_af_packet") || slot >= needed) return {};
    const std::string least = std::to_string(std::bit_ceil(needed));
    return refused(device_,
                   "its slots have " + std::to_string(slot) + " bytes, and the fabric's packets " +
                       std::to_string(largest_frame_) + "; add framesz=" + least +
                       ",blocksz=65536 to one_armed_dpdk",
                   EMSGSIZE);
  }

  wire::Result<void> set_up(const wire::Ipv4Prefix& groups) {
    rte_eth_dev_info info{};
    if (const int error = rte_eth_dev_info_get(port_, &info); error != 0) {
      return refused(device_, "it has no device information", error);
    }
    const std::uint16_t most = info.tx_desc_lim.nb_mtu_seg_max;  // 0: not named
    sends_pieces_ = (info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) != 0 &&
                    (most == 0 || most >= kMostPieces);
    rte_eth_conf config{};
    if (sends_pieces_) config.txmode.offloads = RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
    if (auto fits = choose_mtu(info, config); !fits) return fits;
    if (auto reachable = show_payloads(info.device); !reachable) return reachable;
    rte_flow_error flaw{};
    // Virtual devices share the interface's packets with the kernel, and most know no rules.
    const bool is_isolated = rte_flow_isolate(port_, 1, &flaw) == 0;
    if (!is_isolated && is_pci(device_)) {
      return refused(device_, "it would take ARP and ssh from the kernel as well; take one of mlx5",
                     rte_errno);
    }
    if (auto ready = make_queues(config); !ready) return ready;
    return is_isolated ? take_groups(groups) : wire::Result<void>();
  }

  // DPDK's default is 1500, and drivers drop longer packets.
  wire::Result<void> choose_mtu(const rte_eth_dev_info& info, rte_eth_conf& config) {
    const std::uint32_t mtu = largest_frame_ - RTE_ETHER_HDR_LEN;
    const std::uint32_t longest = std::min<std::uint32_t>(
        info.max_mtu, info.max_rx_pktlen - RTE_ETHER_HDR_LEN - RTE_ETHER_CRC_LEN);
    if (mtu <= longest) {
      config.rxmode.mtu = mtu;
    } else if (is_pci(device_)) {  // virtual ones name 1500, and take what their interface takes
      return refused(device_,
                     "its packets have at most " + std::to_string(longest) +
                         " bytes, and the fabric's " + std::to_string(mtu) +
                         "; use a smaller mtu in the topology's [fabric]",
                     EMSGSIZE);
    }
    return {};
  }

  wire::Result<void> make_queues(const rte_eth_conf& config) {
    const auto bytes = static_cast<std::uint16_t>(std::bit_ceil(largest_frame_ + 64));
    whole_.reset(rte_pktmbuf_pool_create("cepheus_whole", kWholePackets, kCache, 0,
                                         static_cast<std::uint16_t>(RTE_PKTMBUF_HEADROOM + bytes),
                                         SOCKET_ID_ANY));
    pieces_.reset(rte_pktmbuf_pool_create("cepheus_pieces", kPieces, kCache,
                                          RTE_ALIGN(sizeof(Shared), RTE_MBUF_PRIV_ALIGN),
                                          kPieceBytes, SOCKET_ID_ANY));
    if (!whole_ || !pieces_) return refused(device_, "no memory for packets", rte_errno);
    std::uint16_t rx = kRing;
    int error = rte_eth_dev_configure(port_, 1, 1, &config);
    if (error == 0) error = rte_eth_dev_adjust_nb_rx_tx_desc(port_, &rx, &tx_);
    if (error == 0) {
      error = rte_eth_rx_queue_setup(port_, 0, rx, SOCKET_ID_ANY, nullptr, whole_.get());
    }
    if (error == 0) error = rte_eth_tx_queue_setup(port_, 0, tx_, SOCKET_ID_ANY, nullptr);
    if (error == 0) error = rte_eth_dev_start(port_);
    if (error != 0) return refused(device_, "its queues can't be set up", error);
    return {};
  }

  // All other packets stay the kernel's.
  wire::Result<void> take_groups(const wire::Ipv4Prefix& groups) {
    rte_flow_item_ipv4 address{}, mask{};
    address.hdr.dst_addr = rte_cpu_to_be_32(groups.base.value());
    mask.hdr.dst_addr = rte_cpu_to_be_32(groups.mask());
    const std::array<rte_flow_item, 3> pattern{{
        {.type = RTE_FLOW_ITEM_TYPE_ETH, .spec = nullptr, .last = nullptr, .mask = nullptr},
        {.type = RTE_FLOW_ITEM_TYPE_IPV4, .spec = &address, .last = nullptr, .mask = &mask},
        {.type = RTE_FLOW_ITEM_TYPE_END, .spec = nullptr, .last = nullptr, .mask = nullptr},
    }};
    const rte_flow_action_queue queue{.index = 0};
    const std::array<rte_flow_action, 2> actions{{
        {.type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &queue},
        {.type = RTE_FLOW_ACTION_TYPE_END, .conf = nullptr},
    }};
    rte_flow_attr direction{};
    direction.ingress = 1;
    rte_flow_error flaw{};
    if (rte_flow_create(port_, &direction, pattern.data(), actions.data(), &flaw) != nullptr) {
      return {};
    }
    return refused(device_,
                   std::string("no rule for groups' addresses (") +
                       (flaw.message != nullptr ? flaw.message : "no reason") + ")",
                   rte_errno);
  }

  // Devices on the bus read payloads themselves; virtual ones read them in this process.
  wire::Result<void> show_payloads(rte_device* device) {
    if (!is_pci(device_)) return {};
    const auto memory = pools_.memory(pool_);
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const bool done = rte_extmem_register(memory.data(), memory.size(), nullptr, 0, page) == 0 &&
                      rte_dev_dma_map(device, memory.data(), iova_of(memory), memory.size()) == 0;
    return done ? wire::Result<void>()
                : refused(device_, "it can't read the pool of payloads", rte_errno);
  }
  static std::uint64_t iova_of(std::span<std::uint8_t> memory) {
    return rte_mem_virt2iova(memory.data());
  }

  // Payloads outside pools are gone when this returns.
  rte_mbuf* whole(const wire::Frame& frame) {
    rte_mbuf* packet = rte_pktmbuf_alloc(whole_.get());
    if (packet == nullptr) return nullptr;
    const std::size_t length =
        frame.to_bytes({rte_pktmbuf_mtod(packet, std::uint8_t*), rte_pktmbuf_tailroom(packet)});
    if (length != 0) {
      rte_pktmbuf_append(packet, static_cast<std::uint16_t>(length));
      return packet;
    }
    rte_pktmbuf_free(packet);
    return nullptr;
  }

  rte_mbuf* in_pieces(const wire::Frame& frame) {
    std::array<rte_mbuf*, 3> pieces;
    if (rte_pktmbuf_alloc_bulk(pieces_.get(), pieces.data(), pieces.size()) != 0) return nullptr;
    auto& [headers, payload, end] = pieces;
    std::memcpy(rte_pktmbuf_append(headers, frame.header_len), frame.bytes.data(),
                frame.header_len);
    auto* shared = static_cast<Shared*>(rte_mbuf_to_priv(payload));
    shared->pools = &pools_;
    shared->ref = frame.ref;
    shared->info.free_cb = give_back;
    shared->info.fcb_opaque = shared;
    rte_mbuf_ext_refcnt_set(&shared->info, 1);
    pools_.hold(frame.ref);
    auto* bytes = const_cast<std::uint8_t*>(frame.external);
    rte_pktmbuf_attach_extbuf(payload, bytes, rte_mem_virt2iova(bytes), frame.payload_len,
                              &shared->info);
    rte_pktmbuf_append(payload, frame.payload_len);
    rte_pktmbuf_chain(headers, payload);
    if (frame.icrc_state == Icrc::kNone) {
      rte_pktmbuf_free(end);
      return headers;
    }
    wire::Frame sealed = frame;
    if (sealed.icrc_state == Icrc::kDeferred) wire::seal_icrc(sealed);
    const std::uint32_t icrc = rte_cpu_to_le_32(sealed.icrc);
    std::memcpy(rte_pktmbuf_append(end, kIcrcSize), &icrc, kIcrcSize);
    rte_pktmbuf_chain(headers, end);
    return headers;
  }

  const std::string device_;
  PayloadPools& pools_;
  const std::uint32_t pool_;
  std::uint32_t largest_frame_ = 0;
  bool sends_pieces_ = false;
  std::uint16_t tx_ = kRing;  // descriptors
  Pool whole_, pieces_;
  std::uint16_t port_ = RTE_MAX_ETHPORTS;
  std::array<rte_mbuf*, kBurst> received_{}, waiting_{};
  std::uint16_t first_received_ = 0, received_count_ = 0, waiting_count_ = 0;
  std::uint64_t dropped_ = 0;
  bool pushed_ = false;
};

}  // namespace

wire::Result<std::unique_ptr<InterfaceDriver>> DpdkDriver::open(const std::string& device,
                                                                std::uint32_t largest_frame,
                                                                const wire::Ipv4Prefix& groups,
                                                                PayloadPools& pools,
                                                                std::uint32_t pool) {
  auto driver = std::make_unique<Driver>(device, pools, pool);
  if (auto opened = driver->open(largest_frame, groups); !opened)
    return tl::unexpected(opened.error());
  return driver;
}

}  // namespace cepheus::fabric
