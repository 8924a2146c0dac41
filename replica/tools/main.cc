// cepheus-replica: serves a replica of a volume, shows the status of replicas, compares them.
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "replica/tools/commands.h"
#include "support/command_line/command_line.h"
#include "support/command_line/process.h"

namespace {

int run(int argc, char** argv) {
  namespace replica = cepheus::replica;
  namespace command_line = cepheus::command_line;
  CLI::App app{"Serve a replica of a volume, show the status of replicas, or compare them."};
  command_line::set_up(app, "cepheus-replica", CEPHEUS_VERSION);
  app.require_subcommand(1);

  replica::ServeArguments serving;
  auto* serve = app.add_subcommand("serve", "serve a replica until SIGTERM");
  command_line::set_example(
      *serve, "cepheus-replica serve --volume v --file /srv/v --size 1G --create --listen h1:7800");
  serve->add_option("--volume", serving.volume, "serve the volume of this name")
      ->type_name("NAME")
      ->required();
  serve
      ->add_option("--file", serving.file, "keep the data in this file, the record in PATH.cepheus")
      ->type_name("PATH")
      ->required();
  serve->add_option("--size", serving.size, "set a new replica's size in bytes, or with K, M, G, T")
      ->type_name("BYTES")
      ->transform(CLI::AsSizeValue(false));
  serve
      ->add_option("--block", serving.block,
                   "set a new replica's block: a power of two from 512 to 65536 (default: 4096)")
      ->type_name("BYTES");
  serve->add_flag("--create", serving.create, "create the files if they do not exist")
      ->needs("--size");
  serve
      ->add_option_function<std::string>(
          "--cache",
          [&serving](const std::string& cache) { serving.is_direct = cache == "direct"; },
          "keep the data in the kernel's page cache, or directly in own memory, for NICs with DMA "
          "(default: page)")
      ->check(CLI::IsMember({"page", "direct"}));
  serve->add_option("--listen", serving.listen, "listen for writers at this address")
      ->type_name("HOST:PORT")
      ->required();
  serve
      ->add_option("--device", serving.device,
                   "use this RDMA device (default: the nearest usable one)")
      ->type_name("NAME");
  serve->add_option("--ready-fd", serving.ready_fd, "write a line to this descriptor when serving")
      ->type_name("FD");

  std::vector<std::string> addresses;
  bool as_json = false;
  auto* status = app.add_subcommand("status", "show the status of replicas");
  command_line::set_example(*status, "cepheus-replica status h1:7800 h2:7800");
  status->add_option("ADDRESS", addresses, "show the replicas at these addresses, HOST:PORT")
      ->type_name("")
      ->required();
  status->add_flag("--json", as_json, "print one JSON object per line");

  std::string checked;
  std::vector<std::string> replicas;
  auto* check = app.add_subcommand("check", "compare a volume's replicas, name differing blocks");
  command_line::set_example(*check,
                            "cepheus-replica check --volume v --replicas h1:7800,h2:7800,h3:7800");
  check->add_option("--volume", checked, "check the volume of this name")
      ->type_name("NAME")
      ->required();
  check
      ->add_option("--replicas", replicas, "compare these, all of the volume's replicas, each once")
      ->type_name("HOST:PORT,...")
      ->required()
      ->delimiter(',');
  command_line::set_example(app, "cepheus-replica status h1:7800 h2:7800");

  if (const auto code = command_line::parse(app, argc, argv)) return *code;
  if (*serve) return replica::serve(serving);
  if (*status) return replica::show_status(addresses, as_json);
  return replica::check_volume(checked, replicas);
}

}  // namespace

int main(int argc, char** argv) {
  return cepheus::command_line::run_program("cepheus-replica", [&] { return run(argc, argv); });
}
