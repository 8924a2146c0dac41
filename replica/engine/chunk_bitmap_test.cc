#include "replica/engine/chunk_bitmap.h"

#include <gtest/gtest.h>

namespace cepheus::replica {
namespace {

constexpr std::uint64_t kAll = ~std::uint64_t{0};

TEST(ChunkBitmap, HasABitForEachChunkOfSeveralWords) {
  for (const std::uint32_t chunk : {0u, 1u, 63u, 64u, 65u, 127u, 128u, 129u}) {
    ChunkBitmap bitmap(130);
    EXPECT_TRUE(bitmap.empty());
    bitmap.set(chunk);
    EXPECT_EQ(bitmap.count(), 1u);
    EXPECT_EQ(bitmap.first(), chunk);
    EXPECT_EQ(bitmap.words()[chunk / 64], std::uint64_t{1} << chunk % 64);
    for (std::uint32_t c = 0; c < 130; ++c) EXPECT_EQ(bitmap.has(c), c == chunk) << c;
    bitmap.clear(chunk);
    EXPECT_TRUE(bitmap.empty());
  }
}

TEST(ChunkBitmap, SetsRanges) {
  ChunkBitmap bitmap(130);
  bitmap.set(ChunkRange{60, 10});
  EXPECT_EQ(bitmap.count(), 10u);
  EXPECT_EQ(bitmap.first(), 60u);
  EXPECT_TRUE(bitmap.has(69) && !bitmap.has(70));
  bitmap.set_all();
  EXPECT_EQ(bitmap.count(), 130u);
}

TEST(ChunkBitmap, TakesWordsOfAnyNumberAndDropsBitsBeyondItsChunks) {
  EXPECT_EQ(ChunkBitmap(130, {kAll, kAll, kAll, kAll}).count(), 130u);
  EXPECT_EQ(ChunkBitmap(128, {kAll, kAll, kAll}).count(), 128u);
  EXPECT_EQ(ChunkBitmap(130, {2}).first(), 1u);
  EXPECT_EQ(ChunkBitmap(130, {2}).count(), 1u);
}

TEST(ChunkBitmap, AddsAnother) {
  ChunkBitmap a(130), b(130);
  a.set(1);
  b.set(129);
  a.add(b);
  EXPECT_EQ(a.count(), 2u);
  EXPECT_TRUE(a.has(1) && a.has(129));
}

TEST(Geometry, LastChunkMayBeShort) {
  const Geometry geometry{.size = 10 * 4096, .block = 4096, .chunk = 4 * 4096};
  EXPECT_EQ(geometry.chunks(), 3u);
  EXPECT_EQ(geometry.chunk_offset(2), 8u * 4096);
  EXPECT_EQ(geometry.chunk_bytes(1), 4u * 4096);
  EXPECT_EQ(geometry.chunk_bytes(2), 2u * 4096);
}

}  // namespace
}  // namespace cepheus::replica
