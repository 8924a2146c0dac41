// cepheusctl as a user runs it, against a socket with a fabric's answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "support/reports/recorded_calls.h"
#include "switch-emulator/live/status/control_protocol.h"
#include "switch-emulator/live/status/late.h"
#include "switch-emulator/live/status/status.h"
#include "switch-emulator/live/status/test_answering_fabric.h"
#include "switch-emulator/tools/test_invocation.h"
#include "wire/clock.h"

namespace cepheus::tools {
namespace {

using live::AnsweringFabric;
using nlohmann::json;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

live::FabricStatus some_status(std::uint32_t lag) {
  live::FabricStatus status;
  status.pid = 99;
  status.mtu = 4096;
  live::SwitchStatus s0;
  s0.name = "s0";
  live::PortStatus port;
  port.id = wire::PortId(0);
  port.name = "h0";
  port.address = wire::Ipv4(10, 0, 0, 1);
  s0.ports = {port};
  fabric::GroupView group;
  group.id = wire::McstId(198, 18, 0, 1);
  fabric::PathView path;
  path.port = wire::PortId(0);
  path.name = "h0";
  path.is_host = true;
  path.host = port.address;
  path.lag = lag;
  group.paths = {path};
  s0.groups = {group};
  s0.engine[fabric::Counter::kDropNoRoute] = 4;
  status.switches = {s0};
  return status;
}

// UTF-8 characters that could control a terminal.
std::string commands_in(const std::string& text) {
  std::string found;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const bool is_c1 = i > 0 && text[i - 1] == '\xC2' && c < 0xA0;
    if ((c < 0x20 && c != '\n') || c == 0x7F || is_c1) found += text[i];
  }
  return found;
}

json status_answer(std::uint32_t lag = 0) {
  return {{"ok", true}, {"status", to_json(some_status(lag))}};
}

TEST(Cepheusctl, ShowsPortsGroupsAndCounters) {
  AnsweringFabric fabric(status_answer(12));
  Invocation ports({"--fabric", fabric.socket(), "ports"});
  EXPECT_EQ(ports.output(), to_text(some_status(12), live::View::kPorts, false));
  EXPECT_EQ(ports.exit_code(), 0);
  EXPECT_EQ(fabric.last_request(), json({{"ask", "status"}}));
  Invocation groups({"groups", "--fabric", fabric.socket()});
  EXPECT_THAT(groups.output(), HasSubstr("waiting for h0 (12 packets)"));
  EXPECT_EQ(groups.exit_code(), 0);
  Invocation counters({"counters", "--fabric", fabric.socket()});
  EXPECT_THAT(counters.output(), ContainsRegex("drop_no_route +4"));
  EXPECT_EQ(counters.exit_code(), 0);
}

// Of a reduction that waits for h0 for so many seconds; 0: for nobody.
live::FabricStatus waiting_status(int seconds) {
  live::FabricStatus status = some_status(seconds == 0 ? 0 : 1);
  status.now = wire::Instant(std::chrono::seconds(100));
  fabric::GroupView& group = status.switches[0].groups[0];
  group.reduction = {4096, 64, true, 1, 0, 0, {}};
  if (seconds > 0) group.paths[0].late = {0, status.now - std::chrono::seconds(seconds)};
  return status;
}
json waiting_answer(int seconds) {
  return {{"ok", true}, {"status", to_json(waiting_status(seconds))}};
}

TEST(Cepheusctl, NamesLateMembers) {
  AnsweringFabric fabric(waiting_answer(7));
  Invocation late({"late", "--fabric", fabric.socket()});
  EXPECT_THAT(late.output(),
              StartsWith("198.18.0.1  unit 0: h0 (10.0.0.1) at s0, late for 7.0 s, since "));
  EXPECT_EQ(late.exit_code(), 0);
  Invocation as_json({"late", "--json", "--fabric", fabric.socket()});
  EXPECT_EQ(json::parse(as_json.output(), nullptr, false), live::late_json(waiting_status(7)));
  EXPECT_EQ(as_json.exit_code(), 0);
  fabric.change_answer(waiting_answer(0));
  Invocation none({"late", "--fabric", fabric.socket()});
  EXPECT_EQ(none.output(), "nobody is late\n");
  EXPECT_EQ(none.exit_code(), 0);
}

TEST(Cepheusctl, WatchesLateMembersUntilInterrupted) {
  AnsweringFabric fabric(waiting_answer(0));
  Invocation run({"--fabric", fabric.socket(), "late", "--watch", "0.05"});
  EXPECT_THAT(run.output_until("nobody is late\n"), HasSubstr("nobody is late\n"));
  fabric.change_answer(waiting_answer(7));
  EXPECT_THAT(run.output_until("for 7.0 s"), HasSubstr("for 7.0 s"));
  run.interrupt();
  EXPECT_EQ(run.exit_code(), 0);
  Invocation lines({"--fabric", fabric.socket(), "late", "--watch", "0.05", "--json"});
  const std::string output = lines.output_until("\n");
  EXPECT_EQ(json::parse(output.substr(0, output.find('\n')), nullptr, false),
            live::late_json(waiting_status(7)));
  lines.interrupt();
  EXPECT_EQ(lines.exit_code(), 0);
}

TEST(Cepheusctl, ShowsAllTablesAsStatus) {
  AnsweringFabric fabric(status_answer(12));
  Invocation status({"--fabric", fabric.socket(), "status"});
  EXPECT_EQ(status.exit_code(), 0);
  EXPECT_EQ(status.output(), to_text(some_status(12), live::View::kPorts, false) + "\n" +
                                 to_text(some_status(12), live::View::kGroups, false) + "\n" +
                                 to_text(some_status(12), live::View::kCounters, false));
}

TEST(Cepheusctl, PrintsTheStatusAsJson) {
  AnsweringFabric fabric(status_answer());
  Invocation run({"ports", "--json", "--fabric", fabric.socket()});
  EXPECT_EQ(json::parse(run.output(), nullptr, false), to_json(some_status(0)));
}

TEST(Cepheusctl, PrintsWhatANewerFabricSendsAsJson) {
  json newer = status_answer();
  newer["status"]["switches"][0]["of_tomorrow"] = std::uint64_t{18446744073709551615U};
  AnsweringFabric fabric(newer);
  Invocation run({"groups", "--json", "--fabric", fabric.socket()});
  EXPECT_EQ(json::parse(run.output(), nullptr, false), newer["status"]);
}

TEST(Cepheusctl, ChangesALinkAndATrunkEitherWay) {
  struct Change {
    std::string link;
    std::vector<std::string> words;
    json request;
  };
  AnsweringFabric fabric(json{{"ok", true}});
  for (const Change& change : std::vector<Change>{
           {"h1", {"--loss", "0.25"}, {{"direction", "both"}, {"loss", 0.25}}},
           {"h1", {"--down", "--direction", "to-host"}, {{"direction", "down"}, {"up", false}}},
           {"h1", {"--up", "--direction", "to-switch"}, {{"direction", "up"}, {"up", true}}},
           {"leaf0-spine0", {"--down"}, {{"direction", "both"}, {"up", false}}},
           {"leaf0-spine0#2",
            {"--direction", "to-spine0", "--loss", "0.5"},
            {{"direction", "to-spine0"}, {"loss", 0.5}}}}) {
    std::vector<std::string> arguments{"--fabric", fabric.socket(), "link", change.link};
    arguments.insert(arguments.end(), change.words.begin(), change.words.end());
    Invocation run(arguments);
    EXPECT_EQ(run.exit_code(), 0) << run.output();
    json request = change.request;
    request.update({{"ask", "link"}, {"link", change.link}});
    EXPECT_EQ(fabric.last_request(), request);
  }
  Invocation wrong({"--fabric", "x", "link", "leaf0-spine0", "--direction", "left", "--up"});
  EXPECT_EQ(wrong.exit_code(), 2);
}

TEST(Cepheusctl, StopsAFabricAndResetsItsCounters) {
  AnsweringFabric fabric(json{{"ok", true}});
  EXPECT_EQ(Invocation({"stop", "--fabric", fabric.socket()}).exit_code(), 0);
  EXPECT_EQ(fabric.last_request(), json({{"ask", "stop"}}));
  EXPECT_EQ(Invocation({"reset-counters", "--fabric", fabric.socket()}).exit_code(), 0);
  EXPECT_EQ(fabric.last_request(), json({{"ask", "reset_counters"}}));
}

TEST(Cepheusctl, PrintsTheChangesOfAReload) {
  AnsweringFabric fabric(
      json{{"ok", true}, {"changed", {"users = [\"ann\"]", "switch s0: max_groups = 9\x1b"}}});
  Invocation reload({"reload", "--fabric", fabric.socket()});
  EXPECT_EQ(reload.exit_code(), 0);
  EXPECT_EQ(fabric.last_request(), json({{"ask", "reload"}}));
  EXPECT_EQ(reload.output(), "users = [\"ann\"]\nswitch s0: max_groups = 9\\x1b\n");
  AnsweringFabric same(json{{"ok", true}, {"changed", json::array()}});
  EXPECT_EQ(Invocation({"reload", "--fabric", same.socket()}).output(), "nothing has changed\n");
}

TEST(Cepheusctl, ExitsWithOneIfTheFabricRefusesOrIsNotThere) {
  AnsweringFabric fabric(json{{"ok", false}, {"error", "there is no host 'h9'"}});
  Invocation refused({"--fabric", fabric.socket(), "link", "h9", "--up"});
  EXPECT_EQ(refused.exit_code(), 1);
  EXPECT_EQ(refused.output(), "cepheusctl: there is no host 'h9'\n");
  Invocation absent({"--fabric", "/nonexistent/fabric", "ports"});
  EXPECT_EQ(absent.exit_code(), 1);
  EXPECT_THAT(absent.output(), StartsWith("cepheusctl: no fabric at /nonexistent/fabric.ctl"));
  EXPECT_THAT(absent.output(), HasSubstr("name the fabric by --fabric PATH or CEPHEUS_FABRIC"));
}

TEST(Cepheusctl, NoTextOfAFabricControlsTheTerminal) {
  live::FabricStatus status = some_status(12);
  status.switches[0].name = status.switches[0].ports[0].name = "\x1b[2J";
  status.switches[0].groups[0].paths[0].name = "\xC2\x9B";
  status.switches[0].groups[0].source = status.switches[0].groups[0].leader =
      wire::Ipv4(10, 0, 0, 1);
  AnsweringFabric fabric(json{{"ok", true}, {"status", live::to_json(status)}});
  for (const char* view : {"ports", "groups", "counters"}) {
    Invocation shown({"--fabric", fabric.socket(), view});
    EXPECT_THAT(shown.output(), HasSubstr("\\x1b[2J"));
    EXPECT_EQ(commands_in(shown.output()), "") << view;
    EXPECT_EQ(shown.exit_code(), 0);
    Invocation as_json({"--fabric", fabric.socket(), view, "--json"});
    EXPECT_EQ(json::parse(as_json.output(), nullptr, false), live::to_json(status));
    EXPECT_EQ(commands_in(as_json.output()), "") << view;
  }
  status.switches[0].groups[0].reduction = {4096, 64, true, 1, 0, 0, {}};
  status.now += std::chrono::seconds(1);
  status.switches[0].groups[0].paths[0].lag = 1;
  status.switches[0].groups[0].paths[0].late.emplace();
  AnsweringFabric reducing(json{{"ok", true}, {"status", live::to_json(status)}});
  Invocation late({"--fabric", reducing.socket(), "late"});
  EXPECT_THAT(late.output(), HasSubstr("late for 1.0 s"));
  EXPECT_EQ(commands_in(late.output()), "");
  Invocation watching({"--fabric", fabric.socket(), "groups", "--watch", "0.05"});
  EXPECT_EQ(commands_in(watching.output_until("\n")), "");
  watching.interrupt();
  fabric.change_answer(json{{"ok", false}, {"error", "no\x1b[31m"}});
  Invocation refused({"--fabric", fabric.socket(), "ports"});
  EXPECT_EQ(refused.output(), "cepheusctl: no\\x1b[31m\n");
}

TEST(Cepheusctl, ReportsThatAnswersOfWrongTypesAreNoRecording) {
  const std::string directory = testing::TempDir() + "cepheusctl-reports";
  ::setenv("CEPHEUS_REPORT_DIR", directory.c_str(), 1);
  for (const json& wrong :
       {json{{"lost", "many"}}, json{{"counters", 7}}, json{{"passed_over", json::array()}}}) {
    json answer = status_answer();
    answer.update(wrong);
    AnsweringFabric fabric(answer);
    Invocation run(
        {"--fabric", fabric.socket(), "record", "--seconds", "0.05", directory + "/record"});
    EXPECT_EQ(run.exit_code(), 1) << wrong;
    EXPECT_THAT(run.output(), HasSubstr("the fabric's answer is not a recording")) << wrong;
  }
  ::unsetenv("CEPHEUS_REPORT_DIR");
  std::filesystem::remove_all(directory);
}

TEST(Cepheusctl, RecordsLateMembersAtTheirHosts) {
  const std::string directory = testing::TempDir() + "cepheusctl-late",
                    file = directory + "/record";
  ::setenv("CEPHEUS_REPORT_DIR", directory.c_str(), 1);
  AnsweringFabric fabric(waiting_answer(7));
  Invocation run({"--fabric", fabric.socket(), "record", file});
  EXPECT_THAT(run.output_until("recording into"), HasSubstr("recording into"));
  EXPECT_TRUE(fabric.answers_again({{"ask", "status"}}));
  fabric.change_answer(waiting_answer(0));
  EXPECT_TRUE(fabric.answers_again({{"ask", "status"}}));
  run.interrupt();
  EXPECT_EQ(run.exit_code(), 0) << run.output();
  const json events = json::parse(std::ifstream(file)).at("traceEvents");
  json late, host;
  for (const json& each : events) {
    if (each["name"] == "late to unit 0" && each["ph"] == "b") late = each;
    if (each["name"] == "process_name" && each["args"]["name"] == "host h0") host = each;
  }
  ASSERT_TRUE(late.is_object()) << "no span";
  EXPECT_EQ(
      late["args"],
      (json{{"group", "198.18.0.1"}, {"epoch", 0}, {"unit", 0}, {"name", "h0"}, {"switch", "s0"}}));
  EXPECT_EQ(late["pid"], host["pid"]);
  ::unsetenv("CEPHEUS_REPORT_DIR");
  std::filesystem::remove_all(directory);
}

// Runs `cepheusctl record` with few descriptors against a fabric that has nothing to show.
class Recorder {
 public:
  Recorder() {
    ::setenv("CEPHEUS_REPORT_DIR", directory_.c_str(), 1);
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    const rlimit few{kDescriptors, limit.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
    run_.emplace(std::vector<std::string>{"--fabric", fabric_.socket(), "record", file_});
    ::setrlimit(RLIMIT_NOFILE, &limit);
    EXPECT_THAT(run_->output_until("recording into"), HasSubstr("recording into"));
  }
  ~Recorder() {
    ::unsetenv("CEPHEUS_REPORT_DIR");
    std::filesystem::remove_all(directory_);
  }

  static constexpr rlim_t kDescriptors = 64;

  Invocation& run() { return *run_; }
  // A process with one call.
  std::unique_ptr<reports::CallRing> make_ring() const {
    auto ring = reports::CallRing::create(directory_, "program", "job");
    if (!ring) return nullptr;
    const std::int64_t now = wire::monotonic_now().time_since_epoch().count();
    (*ring)->add({}, now, now, 8, 0);
    return std::move(*ring);
  }
  // Waits until the recorder has removed all rings.
  bool has_removed_rings() const {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!reports::find_rings(directory_).empty()) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::yield();
    }
    return true;
  }
  json notes() const { return json::parse(std::ifstream(file_)).at("otherData"); }

 private:
  static std::string make_directory() {
    std::string name = "/dev/shm/cepheusctl-record-XXXXXX";
    return ::mkdtemp(name.data());
  }

  const std::string directory_ = make_directory();
  const std::string file_ = directory_ + "/trace.json";
  AnsweringFabric fabric_{status_answer()};
  std::optional<Invocation> run_;
};

TEST(Cepheusctl, RecordsMoreProcessesThanItHasDescriptorsIfTheyEnd) {
  constexpr std::size_t kProcesses = 2 * Recorder::kDescriptors;
  Recorder recorder;
  for (std::size_t i = 0; i < kProcesses; ++i) ASSERT_TRUE(recorder.make_ring());  // and it ends
  EXPECT_TRUE(recorder.has_removed_rings());
  recorder.run().interrupt();
  EXPECT_EQ(recorder.run().exit_code(), 0) << recorder.run().output();
  EXPECT_EQ(recorder.notes()["calls"], kProcesses);
  EXPECT_EQ(recorder.notes()["calls_lost"], 0);
}

TEST(Cepheusctl, RecordFailsIfItsDescriptorsRunOut) {
  Recorder recorder;
  std::vector<std::unique_ptr<reports::CallRing>> processes;
  for (std::size_t i = 0; i < Recorder::kDescriptors; ++i) {
    processes.push_back(recorder.make_ring());
    ASSERT_TRUE(processes.back());
  }
  EXPECT_EQ(recorder.run().exit_code(), 1);
  EXPECT_THAT(recorder.run().output(), HasSubstr("can't make a socket: Too many open files"));
  EXPECT_EQ(recorder.notes()["fabric_ended"], false);
}

TEST(Cepheusctl, TakesNamesThatAreNoUtf8) {
  AnsweringFabric fabric(json{{"ok", false}, {"error", "there is no such host"}});
  Invocation link({"--fabric", fabric.socket(), "link", "h\xFF", "--down"});
  EXPECT_EQ(link.exit_code(), 1) << link.output();
  EXPECT_EQ(fabric.last_request()["link"], "h\xEF\xBF\xBD");
}

TEST(Cepheusctl, ExitsWithTwoOnWrongUsage) {
  Invocation empty({});
  EXPECT_EQ(empty.exit_code(), 2);
  EXPECT_THAT(empty.output(), StartsWith("cepheusctl: give a command: status, ports, groups"));
  Invocation unknown({"prots"});
  EXPECT_EQ(unknown.exit_code(), 2);
  EXPECT_THAT(unknown.output(), StartsWith("cepheusctl: there is no command 'prots'"));
  Invocation nearest({"nearest"});
  EXPECT_EQ(nearest.exit_code(), 2);
  EXPECT_THAT(nearest.output(), StartsWith("cepheusctl nearest: DEVICE is required\n"
                                           "Example: cepheusctl nearest mlx5_0 mlx5_1\n"));
  EXPECT_EQ(Invocation({"--fabric", "x", "link", "h0", "--loss", "2"}).exit_code(), 2);
  EXPECT_EQ(Invocation({"--fabric", "x", "link", "h0", "--up", "--down"}).exit_code(), 2);
  Invocation nothing({"--fabric", "x", "link", "h0"});
  EXPECT_EQ(nothing.exit_code(), 2);
  EXPECT_THAT(nothing.output(),
              StartsWith("cepheusctl link: --loss P, --up or --down is required\n"));
}

TEST(Cepheusctl, ExplainsItself) {
  Invocation run({"--help"});
  EXPECT_EQ(run.exit_code(), 0);
  EXPECT_THAT(run.output(), HasSubstr("groups"));
  EXPECT_THAT(run.output(), HasSubstr("/tmp/cepheus.sock"));
  EXPECT_THAT(run.output(), HasSubstr("(Env:CEPHEUS_FABRIC)"));
  EXPECT_EQ(Invocation({"--version"}).output(), "cepheusctl " CEPHEUS_VERSION "\n");
}

TEST(Cepheusctl, UsesNoColourInAPipe) {
  AnsweringFabric fabric(status_answer(12));
  Invocation run({"groups", "--fabric", fabric.socket()});
  EXPECT_THAT(run.output(), Not(HasSubstr("\033")));
}

TEST(Cepheusctl, DescribesCountersWithoutAFabric) {
  Invocation run({"counters", "--describe"});
  EXPECT_EQ(run.exit_code(), 0);
  EXPECT_THAT(run.output(), HasSubstr("time to live used up: a routing loop"));
  Invocation as_json({"counters", "--describe", "--json"});
  EXPECT_EQ(as_json.exit_code(), 0);
  EXPECT_EQ(json::parse(as_json.output(), nullptr, false)["drop_other"], "not IPv4");
}

TEST(Cepheusctl, LogsLaggingMembersWithoutATerminalUntilInterrupted) {
  AnsweringFabric fabric(status_answer(12));
  Invocation run({"--fabric", fabric.socket(), "groups", "--watch", "0.05"});
  constexpr char kLine[] = "198.18.0.1  source none yet; waiting for h0 (12 packets)\n";
  EXPECT_THAT(run.output_until(std::string(kLine) + kLine), StartsWith(std::string(kLine) + kLine));
  fabric.change_answer(status_answer(3));
  EXPECT_THAT(run.output_until("(3 packets)"), HasSubstr("(3 packets)"));
  run.interrupt();
  EXPECT_EQ(run.exit_code(), 0);
}

TEST(Cepheusctl, WatchesInJsonByLines) {
  AnsweringFabric fabric(status_answer(12));
  Invocation run({"--fabric", fabric.socket(), "groups", "--watch", "0.05", "--json"});
  const std::string output = run.output_until("\n");
  EXPECT_EQ(json::parse(output.substr(0, output.find('\n')), nullptr, false),
            to_json(some_status(12)));
  run.interrupt();
  EXPECT_EQ(run.exit_code(), 0);
}

TEST(Cepheusctl, WatchesEverySecondByDefault) {
  AnsweringFabric fabric(status_answer(12));
  Invocation run({"--fabric", fabric.socket(), "groups", "--watch"});
  EXPECT_THAT(run.output_until("(12 packets)"), HasSubstr("(12 packets)"));
  run.interrupt();
  EXPECT_EQ(run.exit_code(), 0);
}

}  // namespace
}  // namespace cepheus::tools
