// cepheus-replica: serves a replica of a volume, and queries replicas.
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "replica/tools/commands.h"

int main(int argc, char** argv) {
  namespace replica = cepheus::replica;
  CLI::App app{"Serve a replica of a volume on multicast WRITE from a file, and query replicas."};
  app.set_version_flag("--version", CEPHEUS_VERSION);
  app.require_subcommand(1);

  replica::ServeArguments serving;
  auto* serve = app.add_subcommand("serve", "Serve a replica until a signal ends it");
  serve->add_option("--volume", serving.volume, "The volume's name")->required();
  serve->add_option("--file", serving.file, "File of the data; FILE.cepheus is beside it")
      ->required();
  serve->add_option("--size", serving.size, "Bytes of a new replica, with K, M, G or T")
      ->transform(CLI::AsSizeValue(false));
  serve->add_option("--block", serving.block,
                    "Bytes of a block: a power of two from 512 to 65536 (default: 4096)");
  serve->add_flag("--create", serving.create, "Make the files if they do not exist")
      ->needs("--size");
  serve
      ->add_option_function<std::string>(
          "--cache",
          [&serving](const std::string& cache) { serving.is_direct = cache == "direct"; },
          "page: the kernel's (default); direct: the program's own memory, for NICs with DMA")
      ->check(CLI::IsMember({"page", "direct"}));
  serve->add_option("--listen", serving.listen, "host:port for writers")->required();
  serve->add_option("--device", serving.device,
                    "RDMA device (default: the nearest that can serve)");
  serve->add_option("--ready-fd", serving.ready_fd,
                    "Write a line to this descriptor when it serves");

  std::vector<std::string> addresses;
  bool as_json = false;
  auto* status = app.add_subcommand("status", "Print the status of replicas");
  status->add_option("address", addresses, "host:port of replicas")->required();
  status->add_flag("--json", as_json, "Print one JSON object a line");

  std::string checked;
  std::vector<std::string> replicas;
  auto* check = app.add_subcommand("check", "Compare a volume's replicas");
  check->add_option("--volume", checked, "The volume's name")->required();
  check->add_option("--replicas", replicas, "host:port,host:port,...")->required()->delimiter(',');

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    app.exit(e);
    return 2;
  }
  if (*status) return replica::show_status(addresses, as_json);
  if (*check) return replica::check_volume(checked, replicas);
  return replica::serve(serving);
}
