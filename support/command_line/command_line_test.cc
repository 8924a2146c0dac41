#include "support/command_line/command_line.h"

#include <gtest/gtest.h>

#include <sstream>

namespace cepheus::command_line {
namespace {

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

TEST_F(Program, NamesItsCommandsIfNoneIsGiven) {
  EXPECT_EQ(run(""),
            "tool: give a command: ports, nearest\nExample: tool ports\n"
            "Run 'tool --help' for all options.\n");
}

TEST_F(Program, NamesAnUnknownCommand) {
  EXPECT_EQ(run("bogus"),
            "tool: there is no command 'bogus'; the commands are ports, nearest\n"
            "Example: tool ports\nRun 'tool --help' for all options.\n");
}

TEST_F(Program, NamesAMissingArgumentAndShowsTheCommandsExample) {
  EXPECT_EQ(run("nearest"),
            "tool nearest: DEVICE is required\nExample: tool nearest mlx5_0\n"
            "Run 'tool nearest --help' for all options.\n");
}

TEST_F(Program, NamesAnUnknownOption) {
  EXPECT_EQ(run("ports --bogus"),
            "tool ports: there is no option '--bogus'\nExample: tool ports\n"
            "Run 'tool ports --help' for all options.\n");
}

TEST_F(Program, NamesAnOptionWithoutItsValueEvenIfNoCommandIsGiven) {
  std::string fabric;
  app_.add_option("--fabric", fabric, "fabric");
  EXPECT_NE(run("--fabric").find("tool: --fabric"), std::string::npos) << run("--fabric");
}

TEST_F(Program, EndsHelpWithTheExample) {
  EXPECT_NE(run("nearest --help").find("Example: tool nearest mlx5_0"), std::string::npos);
  EXPECT_NE(run("--help").find("Example: tool ports\nExit status: 0 done."), std::string::npos);
}

}  // namespace
}  // namespace cepheus::command_line
