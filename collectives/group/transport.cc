#include "collectives/group/transport.h"

#include <mcast/query.h>

#include <chrono>
#include <utility>

#include "collectives/core/parameters.h"
#include "collectives/group/direct_channel.h"
#include "collectives/reports/report_file.h"

namespace cepheus::coll {

namespace {

// The usual time of opening, if the fabric answers.
constexpr std::chrono::milliseconds kUsual(20);

mcast_context_params_t context_params() {
  const Parameters& p = parameters();
  mcast_context_params_t params = MCAST_CONTEXT_PARAMS_INIT;
  if (p.device != nullptr && *p.device != '\0') params.device = p.device;
  if (p.mcst_pool != nullptr && *p.mcst_pool != '\0') params.mcst_pool = p.mcst_pool;
  params.mrp_port = static_cast<uint16_t>(p.mrp_port);
  params.register_timeout_ms = static_cast<uint32_t>(p.registration_ms());
  params.register_silence_ms = static_cast<uint32_t>(p.registration_silence_ms());
  params.max_eager_memory = static_cast<size_t>(p.max_eager_memory);
  params.progress_timeout_ms = static_cast<uint32_t>(p.time_limit_ms());
  return params;
}

// Zeros if there is none.
mcast_context_attr_t attributes_of(mcast_context_h context) {
  mcast_context_attr_t attr = MCAST_CONTEXT_ATTR_INIT;
  if (context != nullptr) (void)mcast_context_query(context, &attr);
  return attr;
}

}  // namespace

Transport& Transport::instance() {
  static Transport transport;
  return transport;
}

mcast_status_t Transport::open(std::string& why, bool again) {
  std::lock_guard<std::mutex> guard(open_mutex_);
  if (outcome_ == MCAST_OK) {
    if (attributes_of(context_).is_up != 0) return MCAST_OK;
    if (groups_.load() > 1) {
      why = "the fabric's port is down, and groups of other communicators still hold it";
      return MCAST_ERR_NO_DEVICE;
    }
    again = true;
  }
  if (!tried_ || again || opening_.valid()) {
    if (!opening_.valid()) {
      close();
      // If no thread can start, get() opens the device.
      opening_ = std::async(std::launch::async | std::launch::deferred, &Transport::open_context);
    }
    if (tried_ && opening_.wait_for(kUsual) == std::future_status::timeout) {
      outcome_ = MCAST_ERR_AGAIN;
      why_ = "the fabric has not answered yet; Cepheus goes on attaching to it";
    } else {
      tried_ = true;
      Opened opened = opening_.get();
      context_ = opened.context;
      why_ = std::move(opened.why);
      outcome_ = opened.status == MCAST_OK ? open_carrier(why_) : opened.status;
    }
  }
  why = why_;
  return outcome_;
}

uint32_t Transport::host_address() {
  std::lock_guard<std::mutex> guard(open_mutex_);
  return outcome_ == MCAST_OK ? attributes_of(context_).ipv4 : 0;
}

Transport::Opened Transport::open_context() {
  Opened opened;
  const mcast_context_params_t params = context_params();
  opened.status = mcast_context_create(&params, &opened.context);
  if (opened.status != MCAST_OK) {
    opened.why = mcast_last_error();
    opened.context = nullptr;
    return opened;
  }
  const mcast_context_attr_t attr = attributes_of(opened.context);
  ReportFile::set_address(wire::Ipv4(attr.ipv4));
  ReportFile::instance().set_device(std::string(attr.device) + ", " + attr.device_why);
  return opened;
}

mcast_status_t Transport::open_carrier(std::string& why) {
  carrier_ = "multicast";
  const Carrier wanted = parameters().chosen_carrier();
  if (wanted == Carrier::kDirect) return MCAST_OK;
  uct_ = UctDomain::open(attributes_of(context_).device, why);
  if (uct_ != nullptr) return MCAST_OK;
  if (wanted == Carrier::kUcx) return MCAST_ERR_NO_DEVICE;
  carrier_ = "multicast, without UCX: " + why;
  why.clear();
  return MCAST_OK;
}

std::unique_ptr<Channel> Transport::open_channel(mcast_group_h group, Channel::Arrival arrival,
                                                 void* arg, std::string& why) {
  if (uct_ != nullptr) return uct_->open_channel(group, arrival, arg, why);
  return std::make_unique<DirectChannel>(group, arrival, arg);
}

std::string Transport::carrier() const { return carrier_; }

std::uint64_t Transport::registered_bytes() {
  std::lock_guard<std::mutex> guard(mutex_);
  return attributes_of(context_).registered_bytes;
}

void Transport::close() {
  std::lock_guard<std::mutex> guard(mutex_);
  if (opening_.valid()) context_ = opening_.get().context;
  uct_.reset();
  if (context_ != nullptr) mcast_context_destroy(context_);
  context_ = nullptr;
}

// Once for all groups of the context.
unsigned Transport::progress() {
  std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock || context_ == nullptr || groups_.load() == 0) return 0;
  return mcast_progress(context_);
}

}  // namespace cepheus::coll
