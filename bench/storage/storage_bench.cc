// Replicated writes over one NIC and switch, by the ways that there are, in turns: to all replicas
// by multicast WRITE, to one of them, to each of them, and along a chain.
//
//   storage_bench --rank 0 --replicas N --directory D [--switch PID] [--seconds S] SIZE:DEPTH ...
//   storage_bench --rank I --replicas N --directory D      on the replicas' hosts, I = 1 .. N
//
// The directory is shared: processes leave their names there. With --sender-group, alike on all, the
// multicast is a sender group's. For each line that it reads the writer measures a round of all
// cases. It prints a JSON object for each case and way, then an empty line: {"way", "size", "depth",
// "rate", "median", "p10", "p90", "n", "cpu", "writer"}: WRITEs a second, latencies in microseconds,
// and the CPU time of a WRITE in microseconds, of all processes and of the writer's. The data is read
// back.
//
// A WRITE to several ends when all have it. In the chain each replica forwards the data, and the last
// one notifies the writer, as in chain replication.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "bench/storage/replica.h"
#include "bench/storage/writer.h"

int main(int argc, char** argv) {
  using namespace cepheus::bench;
  Options options;
  CLI::App app{
      "Replicated writes by multicast, to one, to each, and along a chain (./run bench storage)"};
  app.add_option("--rank", options.rank, "0: the writer")->required();
  app.add_option("--replicas", options.replicas)->check(CLI::Range(1, 15));
  app.add_option("--directory", options.directory, "shared by all processes")
      ->required()
      ->check(CLI::ExistingDirectory);
  app.add_flag("--sender-group", options.sender_group);
  app.add_option("--switch", options.switch_pid, "whose CPU time counts as well");
  app.add_option("--seconds", options.seconds, "for each way, case and round");
  app.add_option("cases", options.cases, "SIZE:DEPTH");
  CLI11_PARSE(app, argc, argv);
  try {
    if (options.rank == 0) {
      Writer(options).run();
    } else {
      Replica(options).serve();
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "storage_bench, rank %u: %s\n", options.rank, e.what());
    return 1;
  }
  return 0;
}
