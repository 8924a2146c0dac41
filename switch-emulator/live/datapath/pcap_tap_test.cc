#include "switch-emulator/live/datapath/pcap_tap.h"

#include <gmock/gmock.h>
#include <pcap/pcap.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>

#include "switch-emulator/live/test_fabric.h"
#include "wire/icrc.h"

namespace cepheus::live {
namespace {

struct Captured {
  std::vector<std::vector<std::uint8_t>> packets;
  std::vector<std::int64_t> nanoseconds;  // since 1970
  bool ends_behind_a_frame = false;
};

Captured read_capture(const std::string& path) {
  std::array<char, PCAP_ERRBUF_SIZE> error{};
  pcap_t* file = pcap_open_offline_with_tstamp_precision(path.c_str(), PCAP_TSTAMP_PRECISION_NANO,
                                                         error.data());
  if (file == nullptr) throw std::runtime_error(error.data());
  EXPECT_EQ(pcap_datalink(file), DLT_EN10MB);
  Captured captured;
  pcap_pkthdr* header = nullptr;
  const u_char* data = nullptr;
  int more = 0;
  while ((more = pcap_next_ex(file, &header, &data)) == 1) {
    EXPECT_EQ(header->caplen, header->len);
    captured.packets.emplace_back(data, data + header->caplen);
    captured.nanoseconds.push_back(header->ts.tv_sec * 1'000'000'000LL + header->ts.tv_usec);
  }
  captured.ends_behind_a_frame = more == PCAP_ERROR_BREAK;
  pcap_close(file);
  return captured;
}

class CaptureTest : public testing::Test {
 protected:
  CaptureTest() { options.pcap_dir = directory; }
  ~CaptureTest() override { std::filesystem::remove_all(directory); }

  std::string directory = "/tmp/cepheus-test-capture-" + std::to_string(getpid());
  LiveOptions options;
};

// Output of a shell command.
std::string output_of(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  std::string output;
  std::array<char, 256> part{};
  while (pipe != nullptr && fgets(part.data(), part.size(), pipe) != nullptr) output += part.data();
  if (pipe != nullptr) pclose(pipe);
  return output;
}

TEST_F(CaptureTest, HoldsBothDirectionsOfEveryPortWithRightIcrcs) {
  {
    TestFabric fabric(net::Topology::star(2), options);
    const auto h0 = fabric.attach("h0"), h1 = fabric.attach("h1");
    wire::Frame frame;
    send_packet(
        *h0,
        {.to = h1->identity().address, .psn = wire::Psn(11), .payload_bytes = 1024, .fill = 1});
    ASSERT_TRUE(await_frame(*h1, frame));
    EXPECT_EQ(frame.icrc_state,
              wire::Icrc::kDeferred);  // the capture does not compute it for the receiver
    send_packet(
        *h1, {.to = h0->identity().address, .psn = wire::Psn(22), .payload_bytes = 4, .fill = 2});
    ASSERT_TRUE(await_frame(*h0, frame));
  }
  for (const char* host : {"h0", "h1"}) {
    const Captured captured = read_capture(directory + "/" + host + ".pcap");
    ASSERT_EQ(captured.packets.size(), 2u) << host;
    EXPECT_LT(captured.nanoseconds[0], captured.nanoseconds[1]);
    EXPECT_LT(std::abs(captured.nanoseconds[0] / 1'000'000'000 - time(nullptr)), 600);
    std::vector<std::uint32_t> psns;
    for (const auto& packet : captured.packets) {
      const auto frame = wire::Frame::from_bytes(packet);
      ASSERT_TRUE(frame);
      EXPECT_TRUE(wire::check_icrc(*frame));
      psns.push_back(wire::RoceHeaders::parse(*frame)->bth.psn.value());
    }
    EXPECT_THAT(psns, testing::ElementsAre(11, 22));
  }
}

TEST_F(CaptureTest, CanBeReadWhileTheFabricIsIdle) {
  TestFabric fabric(net::Topology::star(2), options);
  const auto h0 = fabric.attach("h0"), h1 = fabric.attach("h1");
  wire::Frame frame;
  send_packet(*h0, {.to = h1->identity().address, .payload_bytes = 8});
  ASSERT_TRUE(await_frame(*h1, frame));
  const auto until = std::chrono::steady_clock::now() + kTimeLimit;
  while (read_capture(directory + "/h1.pcap").packets.empty() &&
         std::chrono::steady_clock::now() < until) {
    std::this_thread::yield();
  }
  EXPECT_EQ(read_capture(directory + "/h1.pcap").packets.size(), 1u);
}

TEST_F(CaptureTest, IsRoceToWireshark) {
  if (output_of("command -v tshark").empty()) {
    GTEST_SKIP() << "tshark is missing: install it to have another opinion on the captures";
  }
  {
    TestFabric fabric(net::Topology::star(2), options);
    const auto h0 = fabric.attach("h0"), h1 = fabric.attach("h1");
    wire::Frame frame;
    send_packet(*h0, {.to = h1->identity().address, .psn = wire::Psn(4711), .payload_bytes = 256});
    ASSERT_TRUE(await_frame(*h1, frame));
  }
  const std::string fields =
      output_of("tshark -r " + directory +
                "/h1.pcap -T fields -e infiniband.bth.opcode "
                "-e infiniband.bth.psn -e ip.src -e ip.dst -e _ws.malformed 2>/dev/null");
  EXPECT_EQ(fields, "4\t4711\t10.0.0.1\t10.0.0.2\t\n");
}

TEST(PcapTap, ReportsWhyItCantWrite) {
  const auto tap = PcapTap::create("/no/such/directory/h0.pcap");
  ASSERT_FALSE(tap);
  EXPECT_THAT(tap.error().text, testing::HasSubstr("/no/such/directory/h0.pcap"));
}

// A file with a size limit stands in for a full disk: the kernel writes as much as fits.
TEST_F(CaptureTest, EndsBehindAWholeFrameWithAWarningWhenTheDiskIsFull) {
  std::filesystem::create_directories(directory);
  const std::string path = directory + "/h0.pcap";
  const auto before = std::signal(SIGXFSZ, SIG_IGN);  // as all programs do (process.h)
  rlimit usual{};
  getrlimit(RLIMIT_FSIZE, &usual);
  const rlimit small{10'001, usual.rlim_max};
  std::vector<std::string> warnings;
  wire::RoceHeaders headers;
  wire::Frame frame;
  headers.emit(frame, 0);
  {
    auto tap = PcapTap::create(path, [&](const std::string& text) { warnings.push_back(text); });
    ASSERT_TRUE(tap);
    setrlimit(RLIMIT_FSIZE, &small);
    for (int n = 0; n < 500; ++n) (*tap)->write(frame);
  }
  setrlimit(RLIMIT_FSIZE, &usual);
  std::signal(SIGXFSZ, before);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], testing::HasSubstr(path + " has ended: File too large"));
  const std::size_t whole = (10'001 - 24) / (frame.size() + 16);
  const Captured captured = read_capture(path);
  EXPECT_EQ(captured.packets.size(), whole);
  EXPECT_TRUE(captured.ends_behind_a_frame);
}

}  // namespace
}  // namespace cepheus::live
