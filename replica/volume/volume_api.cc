// The C API of a volume's writer (cepheus/volume.h). It checks and copies the parameters, up to the
// caller's struct_size, and passes requests on. Errors are negative errno values: -EINVAL for a
// wrong parameter with a text that names it, -ENOMEM without memory. No exception leaves it.
// Limits: kMostDepth requests at once, kMostReplicas replicas.
#include <cepheus/volume.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <sstream>
#include <system_error>

#include "replica/volume/volume.h"

struct cepheus_volume {
  std::unique_ptr<cepheus::replica::Volume> volume;
};

namespace {

using cepheus::replica::IoKind;
using cepheus::replica::IoRequest;
using cepheus::replica::Volume;
using cepheus::replica::VolumeOptions;
using Failure = Volume::Failure;

constexpr unsigned kMostDepth = 1024;

tl::expected<VolumeOptions, Failure> options_of(const cepheus_volume_params_t& p) {
  const auto invalid = [](std::string why) {
    return tl::unexpected(Failure{-EINVAL, std::move(why)});
  };
  VolumeOptions options;
  if (p.volume == nullptr || *p.volume == '\0') return invalid("volume: name it");
  if (p.replicas == nullptr) return invalid("replicas: name them, host:port,host:port,...");
  options.volume = p.volume;
  if (p.device != nullptr) options.device = p.device;
  if (p.depth > kMostDepth) return invalid("depth: at most " + std::to_string(kMostDepth));
  if (p.depth != 0) options.depth = p.depth;
  options.copy_rate = p.copy_rate;
  if (p.open_timeout_ms != 0) options.open_timeout = std::chrono::milliseconds(p.open_timeout_ms);
  if (p.multicast != nullptr) {
    const auto multicast = cepheus::replica::multicast_of(p.multicast);
    if (!multicast) return invalid("multicast: use \"cepheus\" or \"mcrdma\"");
    options.multicast = *multicast;
  }
  std::istringstream list(p.replicas);
  for (std::string each; std::getline(list, each, ',');) {
    auto endpoint = cepheus::replica::Endpoint::parse(each);
    if (!endpoint) return invalid("replicas: " + endpoint.error().text);
    options.replicas.push_back(std::move(*endpoint));
  }
  if (options.replicas.empty() || options.replicas.size() > cepheus::replica::kMostReplicas) {
    return invalid("replicas: 1 to " + std::to_string(cepheus::replica::kMostReplicas));
  }
  auto key = cepheus::replica::VolumeKey::from_environment();
  if (!key) return invalid(key.error().text);
  options.key = std::move(*key);
  return options;
}

int refused(const Failure& failure, char* error, std::size_t size) {
  if (error != nullptr && size > 0) {
    const std::size_t n = std::min(size - 1, failure.text.size());
    std::memcpy(error, failure.text.data(), n);
    error[n] = '\0';
  }
  return failure.error;
}

int open_volume(const cepheus_volume_params_t& params, cepheus_volume_h* out, char* error,
                std::size_t error_size) {
  auto options = options_of(params);
  if (!options) return refused(options.error(), error, error_size);
  auto volume = Volume::open(std::move(*options));
  if (!volume) return refused(volume.error(), error, error_size);
  *out = new cepheus_volume{std::move(*volume)};
  return 0;
}

template <typename Body>
int guarded(Body&& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return -ENOMEM;
  } catch (const std::system_error& e) {
    return -e.code().value();
  }
}

}  // namespace

extern "C" {

CEPHEUS_VOLUME_API int cepheus_volume_open(const cepheus_volume_params_t* params,
                                           cepheus_volume_h* out, char* error, size_t error_size) {
  if (params == nullptr || out == nullptr || params->struct_size < sizeof(size_t)) return -EINVAL;
  if (error != nullptr && error_size > 0) *error = '\0';
  cepheus_volume_params_t known = CEPHEUS_VOLUME_PARAMS_INIT;
  std::memcpy(&known, params, std::min(params->struct_size, sizeof known));
  return guarded([&] { return open_volume(known, out, error, error_size); });
}

CEPHEUS_VOLUME_API uint64_t cepheus_volume_size(cepheus_volume_h volume) {
  return volume->volume->geometry().size;
}
CEPHEUS_VOLUME_API uint32_t cepheus_volume_block_size(cepheus_volume_h volume) {
  return volume->volume->geometry().block;
}
CEPHEUS_VOLUME_API size_t cepheus_volume_max_request(cepheus_volume_h) {
  return Volume::kMostRequest;
}

CEPHEUS_VOLUME_API int cepheus_volume_read(cepheus_volume_h volume, void* buffer, size_t length,
                                           uint64_t offset, unsigned flags,
                                           cepheus_volume_done_t done, void* arg) {
  const IoRequest io{0, IoKind::kRead, offset, length, false};
  return guarded([&] { return volume->volume->submit(io, buffer, flags, done, arg); });
}

CEPHEUS_VOLUME_API int cepheus_volume_write(cepheus_volume_h volume, const void* buffer,
                                            size_t length, uint64_t offset, unsigned flags,
                                            cepheus_volume_done_t done, void* arg) {
  const IoRequest io{0, IoKind::kWrite, offset, length, false};
  // Only read from.
  return guarded(
      [&] { return volume->volume->submit(io, const_cast<void*>(buffer), flags, done, arg); });
}

CEPHEUS_VOLUME_API int cepheus_volume_flush(cepheus_volume_h volume, unsigned flags,
                                            cepheus_volume_done_t done, void* arg) {
  const IoRequest io{0, IoKind::kFlush, 0, 0, false};
  return guarded([&] { return volume->volume->submit(io, nullptr, flags, done, arg); });
}

CEPHEUS_VOLUME_API int cepheus_volume_status(cepheus_volume_h volume, char* json, size_t size) {
  return guarded([&] {
    const std::string text = volume->volume->status();
    if (text.empty()) return -EAGAIN;
    if (size > 0) {
      const std::size_t n = std::min(size - 1, text.size());
      std::memcpy(json, text.data(), n);
      json[n] = '\0';
    }
    return static_cast<int>(text.size());
  });
}

CEPHEUS_VOLUME_API void cepheus_volume_close(cepheus_volume_h volume) { delete volume; }
}
