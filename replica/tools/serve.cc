// Start: create or open the record, compare it with the options, open the data, listen, serve. The
// first step that fails ends the program, with exit status 2 if an option or a file is invalid,
// else 1. The option --create makes files only if there is no record, and never touches data
// without one.
//
// SIGINT and SIGTERM end it with status 0. SIGBUS, a page that the disk can't give, ends it at once
// with a line on stderr. Limits: blocks of 512 to 65536 bytes, kMostChunks chunks.
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <csignal>
#include <filesystem>

#include "replica/server/replica_server.h"
#include "replica/tools/commands.h"
#include "support/command_line/process.h"

namespace cepheus::replica {
namespace {

enum ServeExit { kDone = 0, kFailure = 1, kUsage = 2 };

constexpr std::uint32_t kSmallestBlock = 512;
constexpr std::uint32_t kLargestBlock = 65536;  // nbdkit's limit of a smallest request

ReplicaServer* serving = nullptr;

void on_signal(int) {
  const int saved = errno;
  serving->stop();
  errno = saved;
}

// The disk could not give or take a page of the file.
void on_bus_error(int) {
  constexpr char kText[] =
      "cepheus-replica: the disk under the volume's file failed; the volume continues without this "
      "replica; replace the disk\n";
  [[maybe_unused]] const ssize_t n = write(STDERR_FILENO, kText, sizeof kText - 1);
  _exit(kFailure);
}

wire::Result<Geometry> geometry_of(const ServeArguments& arguments) {
  Geometry geometry;
  geometry.size = arguments.size;
  geometry.block = arguments.block;
  if (!std::has_single_bit(geometry.block) || geometry.block < kSmallestBlock ||
      geometry.block > kLargestBlock) {
    return wire::invalid("--block " + std::to_string(geometry.block) +
                         " must be a power of two from 512 to 65536");
  }
  if (geometry.size == 0 || geometry.size % geometry.block != 0) {
    return wire::invalid("--size " + std::to_string(geometry.size) +
                         " must be a multiple of --block " + std::to_string(geometry.block));
  }
  if (geometry.size > kMostChunks * geometry.chunk)
    return wire::invalid("--size " + std::to_string(geometry.size) + " is too large; give less");
  return geometry;
}

wire::Result<RecordFile> create(const ServeArguments& arguments, const std::string& record_path) {
  const auto geometry = geometry_of(arguments);
  if (!geometry) return tl::unexpected(geometry.error());
  if (std::filesystem::exists(arguments.file)) {
    return wire::fail(wire::ErrorCode::kRefused,
                      arguments.file + " is there, and no " + record_path +
                          ": it is not a replica; remove it, or name another file");
  }
  if (auto made = VolumeFile::create(arguments.file, geometry->size); !made) {
    return tl::unexpected(made.error());
  }
  StoredReplica stored;
  stored.volume = arguments.volume;
  stored.geometry = *geometry;
  stored.boot = boot_id();
  stored.record.marks = ChunkBitmap(geometry->chunks());
  auto record = RecordFile::create(record_path, stored);
  if (!record) ::unlink(arguments.file.c_str());
  return record;
}

wire::Result<void> check_same(const ServeArguments& arguments, const StoredReplica& stored) {
  const auto differs = [&](const std::string& what, const std::string& is) {
    return wire::invalid(arguments.file + " has " + what + " " + is +
                         "; correct the option, or name another file");
  };
  if (stored.volume != arguments.volume) return differs("volume", stored.volume);
  if (arguments.size != 0 && stored.geometry.size != arguments.size) {
    return differs("size", std::to_string(stored.geometry.size));
  }
  if (arguments.size != 0 && stored.geometry.block != arguments.block) {
    return differs("block", std::to_string(stored.geometry.block));
  }
  return {};
}

wire::Result<std::unique_ptr<ReplicaServer>> start(const ServeArguments& arguments) {
  const auto endpoint = Endpoint::parse(arguments.listen);
  if (!endpoint) return tl::unexpected(endpoint.error());
  auto key = VolumeKey::from_environment();
  if (!key) return tl::unexpected(key.error());
  const std::string record_path = arguments.file + ".cepheus";
  const bool is_there = std::filesystem::exists(record_path);
  auto record = arguments.create && !is_there ? create(arguments, record_path)
                                              : RecordFile::open(record_path);
  if (!record) return tl::unexpected(record.error());
  if (auto same = check_same(arguments, record->stored()); !same) {
    return tl::unexpected(same.error());
  }
  auto file =
      VolumeFile::open(arguments.file, record->stored().geometry.size,
                       arguments.is_direct ? VolumeFile::Cache::kDirect : VolumeFile::Cache::kPage);
  if (!file) return tl::unexpected(file.error());
  auto listener = listen_at(*endpoint);
  if (!listener) return tl::unexpected(listener.error());
  return ReplicaServer::start({std::move(*listener), std::move(*record), std::move(*file),
                               arguments.device, std::move(*key)});
}

void report_ready(int fd) {
  if (fd < 0) return;
  constexpr char kText[] = "ready\n";
  [[maybe_unused]] const ssize_t n = write(fd, kText, sizeof kText - 1);
  close(fd);
}

}  // namespace

int serve(const ServeArguments& arguments) {
  spdlog::set_default_logger(spdlog::stderr_logger_mt("cepheus-replica"));
  spdlog::set_pattern("cepheus-replica: %v");
  auto server = start(arguments);
  if (!server) {
    spdlog::error("{}", server.error().text);
    return server.error().code == wire::ErrorCode::kInvalid ? kUsage : kFailure;
  }
  serving = server->get();
  command_line::handle_signals({SIGINT, SIGTERM}, on_signal);
  std::signal(SIGBUS, on_bus_error);
  std::signal(SIGPIPE, SIG_IGN);
  spdlog::info("volume {} from {}, at {}", arguments.volume, arguments.file, arguments.listen);
  report_ready(arguments.ready_fd);
  const auto ended = (*server)->run();
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_IGN);
  if (!ended) {
    spdlog::error("{}", ended.error().text);
    return kFailure;
  }
  spdlog::info("ending");
  return kDone;
}

}  // namespace cepheus::replica
