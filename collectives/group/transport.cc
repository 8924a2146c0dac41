// open(): the first call waits for the device. A later one starts a thread and waits kUsual for it,
// so a silent fabric delays each try by 20 ms only. A port that is down is closed and opened anew
// if no other group holds it. The device opens on a stack of its own (own_stack.h).
//
// progress() returns at once if another thread is at it, or if there is no group. The carrier is
// chosen at the opening: libmcast directly, or UCX's rc_mcast, which then owns the context.
#include "collectives/group/transport.h"

#include <mcast/query.h>

#include <chrono>
#include <utility>

#include "collectives/core/parameters.h"
#include "collectives/group/direct_channel.h"
#include "collectives/group/own_stack.h"
#include "collectives/host_mpi.h"
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
  params.link_outage_ms = static_cast<uint32_t>(p.link_outage_ms);
  params.traffic_class = static_cast<uint32_t>(p.traffic_class);
  params.service_level = static_cast<uint32_t>(p.service_level);
  params.flow_label = static_cast<uint32_t>(p.flow_label);
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

// The default of a parameter gives way to the NIC without a line.
void report_contradiction(const mcast_context_attr_t& attr) {
  const Parameters& p = parameters();
  if (attr.contradiction[0] == '\0' || (p.watchdog_ms == 0 && p.link_outage_ms == 0)) return;
  host::log(0, "cepheus: %s: %s (%s is progress_timeout_ms)", attr.device, attr.contradiction,
            host::parameter("watchdog_ms").c_str());
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
      const LeaveSignals leave_signals;
      opening_ = std::async(std::launch::async | std::launch::deferred, &Transport::open_context);
    }
    if (tried_ && opening_.wait_for(kUsual) == std::future_status::timeout) {
      outcome_ = MCAST_ERR_AGAIN;
      why_ = "the fabric has not answered yet; Cepheus goes on attaching to it";
    } else {
      tried_ = true;
      Opened opened = opening_.get();
      {
        std::lock_guard<std::mutex> in_use(mutex_);  // by other threads' progress
        context_ = opened.context;
        uct_ = std::move(opened.uct);
      }
      why_ = std::move(opened.why);
      outcome_ = opened.status;
      if (outcome_ == MCAST_OK) report_contradiction(attributes_of(context_));
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
  on_own_stack([&] { open_carrier(opened, params); });
  if (opened.status != MCAST_OK) {
    opened.context = nullptr;
    opened.uct.reset();
    return opened;
  }
  const mcast_context_attr_t attr = attributes_of(opened.context);
  ReportFile::set_address(wire::Ipv4(attr.ipv4));
  ReportFile::instance().set_device(std::string(attr.device) + ", " + attr.device_why);
  return opened;
}

void Transport::open_carrier(Opened& opened, const mcast_context_params_t& params) {
  if (parameters().chosen_carrier() == Carrier::kUcx) {
    opened.uct = UctDomain::open(params.device, opened.why);
    if (opened.uct == nullptr) return;
  }
  opened.status = opened.uct != nullptr ? opened.uct->open_context(params, &opened.context)
                                        : mcast_context_create(&params, &opened.context);
  if (opened.status != MCAST_OK) opened.why = mcast_last_error();
}

std::unique_ptr<Channel> Transport::open_channel(const mcast_group_params_t& params,
                                                 Channel::Arrival arrival, void* arg,
                                                 mcast_status_t& status) {
  // UCX's rc_mcast has no reductions.
  const bool is_direct = uct_ == nullptr || params.lane == MCAST_LANE_REDUCTION;
  if (!is_direct) return uct_->open_channel(params, arrival, arg, status);
  return DirectChannel::open(context_, params, arrival, arg, status);
}

std::uint64_t Transport::registered_bytes() {
  std::lock_guard<std::mutex> guard(mutex_);
  return attributes_of(context_).registered_bytes;
}

std::string Transport::why_not_register() {
  // A broadcast without a group ends the job there, so each has its own attempt.
  if (parameters().chosen_mode() == Mode::kRequire) return "";
  const std::lock_guard<std::mutex> guard(registrations_mutex_);
  if (!silence_.holds(Clock::now().time_since_epoch())) return "";
  return "no switch answered, and the next attempt comes later: " + silence_.reason();
}

void Transport::end_registration(Clock::time_point began, std::uint32_t members,
                                 const std::string& why_unanswered) {
  const auto now = Clock::now().time_since_epoch();
  const std::lock_guard<std::mutex> guard(registrations_mutex_);
  if (why_unanswered.empty()) return silence_.end(now);
  silence_.note(began.time_since_epoch(), now, members, why_unanswered);
}

void Transport::forget_registrations() {
  const std::lock_guard<std::mutex> guard(registrations_mutex_);
  silence_ = {};
}

// The next device may be at another fabric.
void Transport::close() {
  forget_registrations();
  std::lock_guard<std::mutex> guard(mutex_);
  if (opening_.valid()) {
    Opened opened = opening_.get();
    context_ = opened.context;
    uct_ = std::move(opened.uct);
  }
  if (uct_ == nullptr && context_ != nullptr) mcast_context_destroy(context_);
  uct_.reset();
  context_ = nullptr;
}

// Once for all groups of the context.
unsigned Transport::progress() {
  std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock || context_ == nullptr || groups_.load() == 0) return 0;
  return mcast_progress(context_);
}

}  // namespace cepheus::coll
