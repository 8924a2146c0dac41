// States: INIT after create(); RTR and RTS in connect(); ERR in halt(), where a marker completes
// last; RESET, INIT, RTR and RTS in synchronise(). stop() is ERR for good. RNR retries are
// unlimited, as a member may post late; other retries are kRetries. READs and atomics are disabled.
//
// A refused change names the queue pair and the state; a time-out adds the way to the neighbour. A
// request has one piece, and posting allocates nothing. Each request completes, except announcements
// and those of a list that are not signaled, which complete only if they fail.
#include "libmcast/queue_pair.h"

#include <arpa/inet.h>

#include <array>
#include <bit>
#include <cassert>
#include <cerrno>
#include <cstdio>

#include "wire/announcement.h"
#include "wire/mrp.h"

namespace cepheus::mcast {
namespace {

constexpr std::uint32_t kMarkers = 1;  // receives beside the lane's (halt)

ibv_sge sge_of(const Piece& piece) {
  return {reinterpret_cast<std::uintptr_t>(piece.address), static_cast<std::uint32_t>(piece.length),
          piece.lkey};
}

// `wr` refers to `sge`.
ibv_send_wr request(ibv_wr_opcode opcode, std::uint64_t wr_id, ibv_sge& sge, std::uint32_t imm) {
  ibv_send_wr wr{};
  wr.wr_id = wr_id;
  wr.sg_list = &sge;
  wr.num_sge = sge.length > 0 ? 1 : 0;
  wr.opcode = opcode;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.imm_data = htonl(imm);
  return wr;
}

ibv_send_wr write_of(std::uint64_t wr_id, ibv_sge& sge, const RegionPlace& place,
                     std::optional<std::uint32_t> imm) {
  ibv_send_wr wr =
      request(imm ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE, wr_id, sge, imm.value_or(0));
  wr.wr.rdma.remote_addr = place.offset;
  wr.wr.rdma.rkey = place.rkey;
  return wr;
}

// `bytes`: a path MTU.
ibv_mtu mtu_code(std::uint32_t bytes) {
  return static_cast<ibv_mtu>(std::bit_width(bytes) - std::bit_width(128u));
}

bool post(ibv_qp* pair, ibv_send_wr wr) {
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(pair, &wr, &bad) == 0;
}

// Of a reduction. A member's packets go no further than its switch.
const char* meaning_of_reduction(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_RETRY_EXC_ERR:
      return "its switch stopped acknowledging, or the path to it is cut";
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return "its switch had no slot for a contribution: the switches and this library are of "
             "different versions";
    case IBV_WC_LOC_LEN_ERR:
      return "a packet was longer than a slot: the switches and this library are of different "
             "versions";
    case IBV_WC_REM_INV_REQ_ERR:
      return "its switch does not serve this contribution, or it was longer than a packet of the "
             "group";
    default:
      return nullptr;
  }
}

const char* meaning(ibv_wc_status status, bool is_receive, bool of_reduction) {
  const char* const of_its_switch = of_reduction ? meaning_of_reduction(status) : nullptr;
  if (of_its_switch != nullptr) return of_its_switch;
  switch (status) {
    case IBV_WC_RETRY_EXC_ERR:
      return "a member or the switch stopped acknowledging, cepheusctl groups shows the lagging "
             "members";
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return "a member posted no receive";
    case IBV_WC_LOC_LEN_ERR:
      return is_receive ? "the message was longer than the buffer posted for it"
                        : "the message was longer than the device sends";
    case IBV_WC_REM_INV_REQ_ERR:
      return "a member's buffer was shorter than the message, or the members' path MTUs differ";
    case IBV_WC_REM_ACCESS_ERR:
      return "a member has published no region that holds the WRITE, or has taken its memory back: "
             "the leader's reason and cepheusctl groups name it";
    case IBV_WC_REM_OP_ERR:
      return "a member could not take the message, its own group's reason names the cause";
    case IBV_WC_LOC_PROT_ERR:
      return "the memory passed is not registered or was freed";
    case IBV_WC_WR_FLUSH_ERR:
      return "the queue pair failed or its fabric has ended";
    default:
      return "the device or the fabric failed";
  }
}

}  // namespace

std::string work_failure_text(ibv_wc_status status, bool is_receive, bool of_reduction) {
  return std::string(is_receive ? "receive" : "send") + " failed (" + ibv_wc_status_str(status) +
         "): " + meaning(status, is_receive, of_reduction) + "; set up again with fresh groups";
}

Expected<std::unique_ptr<QueuePair>> QueuePair::create(const Device& device,
                                                       CompletionQueues& queues,
                                                       QueueDepths depths) {
  const std::uint32_t most = device.max_work_requests();
  if (depths.send > most || depths.receive + kMarkers > most) {
    return fail(MCAST_ERR_INVALID,
                "send_depth and recv_depth, or reduction_window: the device allows at most " +
                    std::to_string(most - kMarkers) + " work requests in a queue");
  }
  auto completions = queues.reserve(depths.send + depths.receive + kMarkers);
  if (!completions) return tl::unexpected(completions.error());
  ibv_qp_init_attr init{};
  init.qp_type = IBV_QPT_RC;
  init.send_cq = init.recv_cq = (*completions)->queue();
  std::unique_ptr<QueuePair> pair(new QueuePair(device, std::move(*completions)));
  init.cap.max_send_wr = depths.send;
  init.cap.max_recv_wr = depths.receive + kMarkers;
  init.cap.max_send_sge = 1;
  init.cap.max_recv_sge = 1;
  pair->handle_.reset(ibv_create_qp(device.pd(), &init));
  if (!pair->handle_) return fail(MCAST_ERR_NO_MEMORY, errno_text("no queue pair", errno));

  if (const auto done = pair->initialise(); !done) return tl::unexpected(done.error());
  return pair;
}

Expected<void> QueuePair::initialise() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = device_.port();
  attributes.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  return modify(attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
                "INIT");
}

Expected<void> QueuePair::check_comes_back(const Device& device, CompletionQueues& queues) {
  const auto pair = create(device, queues, {1, 1});
  if (!pair) return {};  // nothing is known
  for (const auto& [state, name] : {std::pair(IBV_QPS_ERR, "ERR"), {IBV_QPS_RESET, "RESET"}}) {
    ibv_qp_attr attributes{};
    attributes.qp_state = state;
    if (const auto done = (*pair)->modify(attributes, IBV_QP_STATE, name); !done) return done;
  }
  return (*pair)->initialise();
}

Expected<void> QueuePair::modify(ibv_qp_attr& attributes, int mask, const char* state) {
  const int error = ibv_modify_qp(handle_.get(), &attributes, mask);
  if (error == 0) return {};
  char number[16];
  std::snprintf(number, sizeof number, "0x%x", handle_->qp_num);
  std::string text = errno_text(std::string("qp ") + number + " could not go to " + state, error);
  if (error == ETIMEDOUT) {
    text += ": no answer for the group's address; " + describe_way(device_.gid(), remote_.address);
  }
  return fail(MCAST_ERR_FABRIC, text);
}

Expected<void> QueuePair::connect(const RemoteEnd& remote, Timers timers) {
  remote_ = remote;
  timers_ = timers;
  return bring_up(remote.start);
}

Expected<void> QueuePair::halt(std::uint64_t marker) {
  // Posted first: rdma_rxe does not look for receives that come after ERR.
  if (!post_receive(marker, {})) return fail(MCAST_ERR_FABRIC, "the device refused a receive");
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  return modify(attributes, IBV_QP_STATE, "ERR");
}

Expected<PairSync::Psns> QueuePair::psns() const {
  ibv_qp_attr now{};
  ibv_qp_init_attr unused{};
  if (const int error = ibv_query_qp(handle_.get(), &now, IBV_QP_SQ_PSN | IBV_QP_RQ_PSN, &unused)) {
    return fail(MCAST_ERR_FABRIC, errno_text("its PSNs can't be read", error));
  }
  return PairSync::Psns{wire::Psn(now.sq_psn), wire::Psn(now.rq_psn)};
}

Expected<void> QueuePair::synchronise(Take take, const std::function<bool()>& post_receives) {
  const auto now = psns();
  if (!now) return tl::unexpected(now.error());
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RESET;
  if (const auto done = modify(attributes, IBV_QP_STATE, "RESET"); !done) return done;
  if (const auto done = initialise(); !done) return done;
  if (!post_receives()) return fail(MCAST_ERR_FABRIC, "the device refused a receive");
  return bring_up(take == Take::kReceivePsn ? now->receive : now->send);
}

Expected<void> QueuePair::bring_up(wire::Psn psn) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = mtu_code(remote_.path_mtu);
  attributes.dest_qp_num = remote_.qpn.value();
  attributes.rq_psn = psn.value();
  attributes.max_dest_rd_atomic = 0;
  attributes.min_rnr_timer = timers_.min_rnr_timer;
  attributes.ah_attr.is_global = 1;
  attributes.ah_attr.port_num = device_.port();
  attributes.ah_attr.sl = device_.marks().service_level;
  attributes.ah_attr.grh.traffic_class = device_.marks().traffic_class;
  attributes.ah_attr.grh.flow_label = device_.marks().flow_label;
  attributes.ah_attr.grh.dgid = gid_of(remote_.address);
  attributes.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(device_.gid_index());
  attributes.ah_attr.grh.hop_limit = 64;
  if (const auto done = modify(attributes,
                               IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                   IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
                               "RTR");
      !done) {
    return done;
  }
  attributes = {};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.sq_psn = psn.value();
  attributes.timeout = timers_.ack_timeout;
  attributes.retry_cnt = kRetries;
  attributes.rnr_retry = 7;  // for ever: a member may post late
  attributes.max_rd_atomic = 0;
  return modify(attributes,
                IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                    IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC,
                "RTS");
}

void QueuePair::stop() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  // Refused only in RESET or by a dead device: then nothing was posted, or nothing completes.
  ibv_modify_qp(handle_.get(), &attributes, IBV_QP_STATE);
}

bool QueuePair::post_send(std::uint64_t wr_id, const Piece& piece, std::uint32_t imm) {
  ibv_sge sge = sge_of(piece);
  return post(handle_.get(), request(IBV_WR_SEND_WITH_IMM, wr_id, sge, imm));
}

bool QueuePair::post_write(std::uint64_t wr_id, const Piece& piece, const RegionPlace& place,
                           std::optional<std::uint32_t> imm) {
  ibv_sge sge = sge_of(piece);
  return post(handle_.get(), write_of(wr_id, sge, place, imm));
}

bool QueuePair::post_announced_write(std::uint64_t silent, const Piece& announcement,
                                     std::uint64_t wr_id, const Piece& piece,
                                     std::optional<std::uint32_t> imm) {
  ibv_sge list = sge_of(announcement), sge = sge_of(piece);
  ibv_send_wr write = write_of(wr_id, sge, {wire::Announcement::kNoKey, 0}, imm);
  ibv_send_wr wr = write_of(silent, list, {wire::Announcement::kKey, 0}, std::nullopt);
  wr.send_flags = 0;
  wr.next = &write;
  return post(handle_.get(), wr);
}

namespace {

// Posts `list` by `post(first, bad)`; `make(request, piece)` makes each work request.
template <typename Wr, typename Make, typename Post>
std::size_t post_list(std::span<const QueuePair::Request> list, Make make, Post post) {
  assert(list.size() <= QueuePair::kMostListed);
  std::array<ibv_sge, QueuePair::kMostListed> pieces;  // the first ones are set, as of `requests`
  std::array<Wr, QueuePair::kMostListed> requests;
  for (std::size_t i = 0; i < list.size(); ++i) {
    pieces[i] = sge_of(list[i].piece);
    requests[i] = make(list[i], pieces[i]);
    if (i > 0) requests[i - 1].next = &requests[i];
  }
  Wr* bad = nullptr;
  if (list.empty() || post(requests.data(), &bad) == 0) return list.size();
  return bad != nullptr ? static_cast<std::size_t>(bad - requests.data()) : 0;
}

}  // namespace

std::size_t QueuePair::post_sends(std::span<const Request> list) {
  return post_list<ibv_send_wr>(
      list,
      [](const Request& each, ibv_sge& sge) {
        ibv_send_wr wr = request(IBV_WR_SEND_WITH_IMM, each.wr_id, sge, each.imm);
        wr.send_flags = each.is_signaled ? IBV_SEND_SIGNALED : 0;
        return wr;
      },
      [this](ibv_send_wr* first, ibv_send_wr** bad) {
        return ibv_post_send(handle_.get(), first, bad);
      });
}

std::size_t QueuePair::post_receives(std::span<const Request> list) {
  return post_list<ibv_recv_wr>(
      list,
      [](const Request& each, ibv_sge& sge) {
        return ibv_recv_wr{each.wr_id, nullptr, &sge, each.piece.length > 0 ? 1 : 0};
      },
      [this](ibv_recv_wr* first, ibv_recv_wr** bad) {
        return ibv_post_recv(handle_.get(), first, bad);
      });
}

bool QueuePair::post_receive(std::uint64_t wr_id, const Piece& piece) {
  ibv_sge sge = sge_of(piece);
  ibv_recv_wr wr{};
  wr.wr_id = wr_id;
  wr.sg_list = &sge;
  wr.num_sge = piece.length > 0 ? 1 : 0;
  ibv_recv_wr* bad = nullptr;
  return ibv_post_recv(handle_.get(), &wr, &bad) == 0;
}

}  // namespace cepheus::mcast
