#include "support/command_line/command_line.h"

#include <gmock/gmock.h>

#include <sstream>

namespace cepheus::command_line {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

class Program : public testing::Test {
 protected:
  Program() {
    set_up(app_, "tool", "1.2.3");
    app_.require_subcommand(1);
    app_.fallthrough();
    app_.add_subcommand("ports", "show ports");
    CLI::App* nearest = app_.add_subcommand("nearest", "order devices");
    nearest->add_option("DEVICE", devices_, "device")->required();
    set_example(*nearest, "tool nearest mlx5_0");
    set_example(app_, "tool ports", "Exit status: 0 done.");
  }
  // Both outputs of a run with these words.
  std::string run(const std::string& words) {
    std::ostringstream out;
    try {
      app_.parse(words);
    } catch (const CLI::ParseError& error) {
      app_.exit(error, out, out);
    }
    return out.str();
  }

  CLI::App app_;
  std::vector<std::string> devices_;
};

TEST_F(Program, PrintsNameAndVersion) { EXPECT_EQ(run("--version"), "tool 1.2.3\n"); }

TEST_F(Program, NamesTheMistakeAndShowsTheExampleOfItsCommand) {
  struct Mistake {
    const char* words;
    const char* of;
    const char* names;
    const char* example;
  };
  for (const Mistake& mistake : {Mistake{"", "tool", "ports, nearest", "tool ports"},
                                 {"bogus", "tool", "'bogus'", "tool ports"},
                                 {"nearest", "tool nearest", "DEVICE", "tool nearest mlx5_0"},
                                 {"ports --bogus", "tool ports", "'--bogus'", "tool ports"}}) {
    const std::string of = mistake.of;
    EXPECT_THAT(run(mistake.words),
                AllOf(StartsWith(of + ": "), HasSubstr(mistake.names),
                      HasSubstr(std::string("\nExample: ") + mistake.example + "\n"),
                      EndsWith("'" + of + " --help' for all options.\n")));
  }
}

TEST_F(Program, NamesAnOptionWithoutItsValueEvenIfNoCommandIsGiven) {
  std::string fabric;
  app_.add_option("--fabric", fabric, "fabric");
  EXPECT_THAT(run("--fabric"), HasSubstr("tool: --fabric"));
}

TEST_F(Program, EndsHelpWithTheExample) {
  EXPECT_THAT(run("nearest --help"), HasSubstr("Example: tool nearest mlx5_0"));
  EXPECT_THAT(run("--help"), HasSubstr("Example: tool ports\nExit status: 0 done."));
}

}  // namespace
}  // namespace cepheus::command_line
