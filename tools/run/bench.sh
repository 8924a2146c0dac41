# ./run bench, experiments: measurements. Sourced by ./run.

bench_help() {
  cat <<'TEXT'
usage: ./run bench NAME [--quick] [--json FILE] [OPTIONS]      ./run bench NAME --help says more

  micro      what the parts cost: ICRC, table bytes, switch copies, registration, RC stream
  bcast      MPI_Bcast by size: cepheus beside Open MPI's algorithms over the same NIC, TCP, shared memory
  overlap    MPI_Ibcast beside a computation of its length: how much of the shorter one is hidden
  safeguard  mode try beside the better of its two ways, on links that are good, lose packets or are slow
  ranks      MPI_Bcast where 32 and 64 ranks share this machine: the default beside Open MPI alone
  sim        packets over links that the simulator makes a second beside ns-3, time to set up, memory
  storage    replicated writes: one multicast WRITE against unicasts and a chain; and those of a volume
  hpl        HPL's panel broadcast, row swap and whole job: increasing ring and long beside multicast
  compare    one of these on two commits, in turns: what a change has cost
TEXT
}

# The packages and targets of each, beyond those of running MPI programs.
bench_command() {
  local name=${1:-}
  [[ -e bench/$name.py && $name =~ ^(micro|bcast|overlap|safeguard|ranks|sim|storage|hpl|compare)$ ]] || bench_help | usage
  shift
  if wants_help "$@"; then
    exec /usr/bin/python3 "bench/$name.py" --help
  fi
  case $name in
    micro)
      need "${packages[@]}" "${test_packages[@]}" libbenchmark-dev perftest
      build ;;
    bcast)
      need gnuplot-nox
      build "${runtime_targets[@]}" ;;
    overlap) build "${runtime_targets[@]}" mpi_overlap ;;
    safeguard) build "${runtime_targets[@]}" mpi_total ;;
    ranks) build "${runtime_targets[@]}" ;;
    sim)
      need "${packages[@]}" libns3-dev
      configure release
      cmake --build build/release --target sim_bench ns3_bench >&2
      exec /usr/bin/python3 bench/sim.py --build build/release "$@" ;;
    storage)
      need "${storage_packages[@]}"
      build "${storage_targets[@]}" storage_bench volume_bench ;;
    hpl)
      need "${hpl_packages[@]}" gnuplot-nox
      build "${runtime_targets[@]}" ;;
    compare) exec /usr/bin/python3 bench/compare.py "$@" ;;
  esac
  exec /usr/bin/python3 "bench/$name.py" --build "$build" "$@"
}

experiments_help() { exec /usr/bin/python3 bench/experiments.py --help; }
experiments_command() {
  need "${packages[@]}" gnuplot-nox
  configure release
  cmake --build build/release --target cepheus-sim >&2
  exec /usr/bin/python3 bench/experiments.py --build build/release "$@"
}
