// Each operation of libmcast lies in the bytes of its Transfer, so nothing is allocated. The
// immediate data is the tag: a receive that gets another tag ends as kMistaken. kFull means to call
// again later; every other error is kFailed. Small messages stay in libmcast's buffers until
// release().
#include "collectives/group/direct_channel.h"

#include <new>

namespace cepheus::coll {

namespace {

Channel::Status to_status(mcast_status_t status) {
  if (status >= 0) return Channel::Status::kStarted;
  return status == MCAST_ERR_AGAIN ? Channel::Status::kFull : Channel::Status::kFailed;
}

mcast_op_t& operation_in(Transfer& transfer, decltype(mcast_op_t::done) done) {
  static_assert(sizeof(mcast_op_t) <= Transfer::kBytes);
  auto* const operation = new (transfer.bytes) mcast_op_t{done, &transfer};
  return *operation;
}

void sent(mcast_op_t* operation, mcast_status_t status, std::size_t length, std::uint32_t) {
  auto* const transfer = static_cast<Transfer*>(operation->user);
  transfer->done(transfer, status == MCAST_OK ? Transfer::Result::kDone : Transfer::Result::kFailed,
                 length);
}

void received(mcast_op_t* operation, mcast_status_t status, std::size_t length, std::uint32_t imm) {
  auto* const transfer = static_cast<Transfer*>(operation->user);
  Transfer::Result result = Transfer::Result::kDone;
  if (status != MCAST_OK) {
    result = Transfer::Result::kFailed;
  } else if (imm != transfer->tag) {
    result = Transfer::Result::kMistaken;
  }
  transfer->done(transfer, result, length);
}

}  // namespace

std::unique_ptr<Channel> DirectChannel::open(mcast_context_h context,
                                             const mcast_group_params_t& params, Arrival arrival,
                                             void* arg, mcast_status_t& status) {
  mcast_group_h group = nullptr;
  status = mcast_group_create(context, &params, &group);
  if (status != MCAST_OK) return nullptr;
  return std::unique_ptr<Channel>(new DirectChannel(group, arrival, arg));
}

DirectChannel::DirectChannel(mcast_group_h group, Arrival arrival, void* arg)
    : Channel(arrival, arg), group_(group) {
  if (takes_small()) (void)mcast_group_set_recv(group, on_small, this);
}

mcast_status_t DirectChannel::on_small(void* arg, void* data, std::size_t length, std::uint32_t) {
  static_cast<DirectChannel*>(arg)->arrived(data, length);
  return MCAST_INPROGRESS;
}

Channel::Status DirectChannel::send_small(mcast_pack_cb_t pack, void* arg) {
  std::size_t length = 0;
  return to_status(mcast_send_eager_pack(group_, pack, arg, kSmallId, &length));
}

Channel::Status DirectChannel::send(const void* data, std::size_t length, std::uint32_t tag,
                                    Transfer& transfer) {
  transfer.tag = tag;
  return to_status(mcast_send(group_, data, length, nullptr, tag, &operation_in(transfer, sent)));
}

Channel::Status DirectChannel::receive(void* data, std::size_t length, std::uint32_t tag,
                                       Transfer& transfer) {
  transfer.tag = tag;
  return to_status(mcast_recv(group_, data, length, nullptr, &operation_in(transfer, received)));
}

}  // namespace cepheus::coll
