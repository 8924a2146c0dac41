// A slot: magic, length, sequence number, fields, marks, and the digest of all before. The slot's
// number is the sequence number's lowest bit. open() takes the whole slot with the higher number,
// but refuses the file if a slot can't be read: that one may be newer.
//
// Refused: a name beyond kLongestName, a record that another process has open (flock(2)), and one
// whose slots do not fit its geometry. The file never grows: posix_fallocate(3) reserves both slots
// first.
#include "replica/server/record_file.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "replica/control/fields.h"
#include "wire/remedy.h"
#include "wire/whole_io.h"

namespace cepheus::replica {

Digest digest_of(std::span<const std::uint8_t> bytes) {
  std::array<std::uint8_t, EVP_MAX_MD_SIZE> whole{};
  unsigned size = 0;
  // Fails only without memory: then zeros, which are no digest.
  if (EVP_Digest(bytes.data(), bytes.size(), whole.data(), &size, EVP_sha256(), nullptr) != 1) {
    whole.fill(0);
  }
  Digest digest;
  std::copy_n(whole.begin(), digest.size(), digest.begin());
  return digest;
}

void make_digests(Digests& digests, std::span<const std::uint8_t> data) {
  auto left = data.subspan(digests.request.offset, digests.request.length);
  while (!left.empty()) {
    const std::size_t size = std::min<std::size_t>(left.size(), digests.request.unit);
    digests.digests.push_back(digest_of(left.first(size)));
    left = left.subspan(size);
  }
}

std::optional<std::string> StoredReplica::refusal(const VolumeHello& hello) const {
  if (hello.volume != volume) {
    return "it serves volume '" + volume + "', not '" + hello.volume + "'";
  }
  if (hello.count == 0 || hello.count > kMostReplicas || hello.place >= hello.count) {
    return "a volume has 1 to " + std::to_string(kMostReplicas) + " replicas";
  }
  if (count != 0 && (hello.place != place || hello.count != count)) {
    return "it is number " + std::to_string(place + 1) + " of " + std::to_string(count) +
           " in the volume's list, not " + std::to_string(hello.place + 1) + " of " +
           std::to_string(hello.count) + ": name all replicas, in the same order as before";
  }
  return std::nullopt;
}

namespace {

constexpr std::array<std::uint8_t, 8> kMagic = {'c', 'e', 'p', 'h', 'r', 'e', 'c', '1'};
constexpr std::size_t kPage = 4096;
constexpr std::size_t kWithoutBitmap = kPage;  // more than all fields but the bitmap take
constexpr std::size_t kLongestName = 255;

std::size_t slot_size(const Geometry& geometry) {
  const std::size_t bytes = kWithoutBitmap + (geometry.chunks() + 63) / 64 * 8;
  return (bytes + kPage - 1) / kPage * kPage;
}

// One process at a time uses the record: a second one would save a state older than the first one's
// last mark or promise.
wire::Result<void> lock_record(const wire::UniqueFd& file, const std::string& path) {
  if (flock(file.get(), LOCK_EX | LOCK_NB) == 0) return {};
  if (errno != EWOULDBLOCK) return tl::unexpected(failed(path, errno));
  return wire::fail(wire::ErrorCode::kRefused,
                    path + " is in use by another process: end that process first");
}

// All fields but the marks.
void fields(auto& io, Is<StoredReplica> auto& v) {
  io(v.volume);
  fields(io, v.geometry);
  io(v.place, v.count, v.boot);
  fields(io, v.record.promised);
  fields(io, v.record.config);
  io.one_of(v.record.loss, Loss::kNone, Loss::kAll);
}

}  // namespace

std::string boot_id() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

std::vector<std::uint8_t> encode_record(const StoredReplica& stored, std::uint64_t sequence) {
  std::vector<std::uint8_t> out;
  Put put(out);
  put(kMagic, std::uint32_t{0}, sequence);  // 0: place of the length before the checksum
  fields(put, stored);
  for (const std::uint64_t word : stored.record.marks.words()) put(word);
  wire::store_be32(out.data() + kMagic.size(), static_cast<std::uint32_t>(out.size()));
  put(digest_of(out));
  return out;
}

std::optional<DecodedRecord> decode_record(std::span<const std::uint8_t> slot) {
  Get head(slot);
  std::uint32_t length = 0;
  head(kMagic, length);
  if (!head.is_whole() || length > slot.size() || slot.size() - length < sizeof(Digest)) {
    return std::nullopt;
  }
  const Digest digest = digest_of(slot.first(length));
  if (std::memcmp(digest.data(), slot.data() + length, digest.size()) != 0) return std::nullopt;
  if (length < kMagic.size() + 4) return std::nullopt;
  Get get(slot.first(length).subspan(kMagic.size() + 4));
  DecodedRecord v;
  get(v.sequence);
  fields(get, v.stored);
  const Geometry& g = v.stored.geometry;
  if (!get.is_whole() || g.chunk == 0 || get.left() != (g.chunks() + std::size_t{63}) / 64 * 8) {
    return std::nullopt;
  }
  std::vector<std::uint64_t> words(get.left() / 8);
  for (std::uint64_t& word : words) get(word);
  v.stored.record.marks = ChunkBitmap(g.chunks(), std::move(words));
  return v;
}

wire::Result<RecordFile> RecordFile::create(const std::string& path, const StoredReplica& stored) {
  if (stored.volume.empty() || stored.volume.size() > kLongestName) {
    return wire::invalid("a volume's name has 1 to 255 bytes");
  }
  RecordFile made(wire::UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)),
                  slot_size(stored.geometry));
  if (!made.file_.is_open()) return tl::unexpected(failed(path, errno));
  const auto give_up = [&path](wire::Error error) {
    ::unlink(path.c_str());
    return tl::unexpected(std::move(error));
  };
  if (auto locked = lock_record(made.file_, path); !locked) return give_up(locked.error());
  const auto size = static_cast<off_t>(2 * made.slot_);
  int error = posix_fallocate(made.file_.get(), 0, size);
  if (error == 0) error = made.save(stored);
  if (error == 0 && fsync(made.file_.get()) != 0) error = errno;
  if (error == 0) error = synchronise_directory_of(path);
  if (error != 0) return give_up(failed(path, error));
  made.stored_ = stored;
  return made;
}

wire::Result<RecordFile> RecordFile::open(const std::string& path) {
  wire::UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file.is_open()) return tl::unexpected(failed(path, errno));
  if (auto locked = lock_record(file, path); !locked) return tl::unexpected(locked.error());
  struct stat found {};
  if (fstat(file.get(), &found) != 0) return tl::unexpected(failed(path, errno));
  RecordFile opened(std::move(file), static_cast<std::size_t>(found.st_size) / 2);
  for (const std::size_t at : {std::size_t{0}, opened.slot_}) {
    std::vector<std::uint8_t> bytes(opened.slot_);
    const std::size_t found_bytes = wire::read_whole(opened.file_.get(), bytes, at);
    // Not as if a save was interrupted: this slot may be the newer one.
    if (found_bytes < bytes.size() && errno != 0) return tl::unexpected(failed(path, errno));
    bytes.resize(found_bytes);
    auto record = decode_record(bytes);
    if (!record || record->sequence <= opened.sequence_) continue;
    opened.sequence_ = record->sequence;
    opened.stored_ = std::move(record->stored);
  }
  if (opened.sequence_ == 0 || opened.slot_ != slot_size(opened.stored_.geometry)) {
    return wire::invalid(path +
                         " is damaged: remove it and the data, and serve with --create; the "
                         "volume's other replicas have all data");
  }
  return opened;
}

int RecordFile::save(const StoredReplica& stored) {
  const std::uint64_t sequence = sequence_ + 1;
  const auto bytes = encode_record(stored, sequence);
  if (bytes.size() > slot_) return EFBIG;
  if (const int error = wire::write_whole(file_.get(), bytes, sequence % 2 * slot_)) return error;
  if (fdatasync(file_.get()) != 0) return errno;
  sequence_ = sequence;
  return 0;
}

wire::Error failed(const std::string& path, int error) {
  return {wire::ErrorCode::kFailed, path + ": " + std::strerror(error) + wire::remedy(error)};
}

int synchronise_directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const wire::UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return fd.is_open() && fsync(fd.get()) == 0 ? 0 : errno;
}

}  // namespace cepheus::replica
