#include "support/recording/trace_file.h"

#include <gtest/gtest.h>

#include <sstream>

namespace cepheus::recording {
namespace {

using Json = TraceFile::Json;

TEST(TraceFile, HoldsBothEndsOfWhateverLasts) {
  std::ostringstream out;
  TraceFile file(out, 1'000'000);
  file.slice({{1, 2}, 1'001'500}, 250, "data 7", Json::object());
  file.span({{1, 2}, 1'002'000}, 1'003'000, "waits", {{"PSN", 7}});
  file.arrow({{1, 2}, 1'001'500}, {{3, 4}, 1'004'000}, "copy");
  file.finish({{"lost", 0}});
  const Json read = Json::parse(out.str());
  const Json& events = read["traceEvents"];
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[0]["ph"], "X");
  EXPECT_DOUBLE_EQ(events[0]["ts"].get<double>(), 1.5);
  EXPECT_DOUBLE_EQ(events[0]["dur"].get<double>(), 0.25);
  EXPECT_EQ(events[1]["ph"], "b");
  EXPECT_EQ(events[2]["ph"], "e");
  EXPECT_EQ(events[1]["id"], events[2]["id"]);
  EXPECT_EQ(events[3]["ph"], "s");
  EXPECT_EQ(events[4]["ph"], "f");
  EXPECT_EQ(events[4]["bp"], "e");
  EXPECT_EQ(events[3]["id"], events[4]["id"]);
  EXPECT_NE(events[1]["id"], events[3]["id"]);
  EXPECT_EQ(read["displayTimeUnit"], "ns");
  EXPECT_EQ(read["otherData"]["lost"], 0);
}

TEST(TraceFile, NeverEndsBeforeItBegins) {
  std::ostringstream out;
  TraceFile file(out);
  file.slice({{1, 1}, 500}, -3, "late", Json::object());
  file.span({{1, 1}, 500}, 400, "late", Json::object());
  file.finish(Json::object());
  const Json events = Json::parse(out.str())["traceEvents"];
  EXPECT_EQ(events[0]["dur"], 0.0);
  EXPECT_EQ(events[1]["ts"], events[2]["ts"]);
}

TEST(TraceFile, TakesNamesOfAnyBytes) {
  std::ostringstream out;
  TraceFile file(out);
  file.name_process(1, "host \"h\xff\n</script>", 1);
  file.finish(Json::object());
  const Json read = Json::parse(out.str(), nullptr, false);
  ASSERT_FALSE(read.is_discarded());
  EXPECT_EQ(read["traceEvents"][0]["args"]["name"], "host \"h\xEF\xBF\xBD\n</script>");
}

TEST(TraceFile, IsWholeWithoutEvents) {
  std::ostringstream out;
  TraceFile(out).finish(Json::object());
  EXPECT_TRUE(Json::parse(out.str())["traceEvents"].empty());
}

}  // namespace
}  // namespace cepheus::recording
