# ./run bench, experiments: measurements. Sourced by ./run.

bench_help() {
  cat <<'TEXT'
usage: ./run bench NAME [--quick] [--json FILE] [OPTIONS]      ./run bench NAME --help describes it

  micro      measure parts: ICRC, table bytes, switch copies, registration, RC stream
  bcast      measure MPI_Bcast by size, against Open MPI's algorithms over the same NIC, TCP, shared memory;
             --mpi mpich: against MPICH's over the same NIC
  collectives
             measure MPI_Barrier, MPI_Allreduce, MPI_Reduce and MPI_Allgather by size, against Open MPI's algorithms
             over the same NIC; --mpi mpich: against MPICH's; --long: MPI_Allreduce of 64 KiB to 8 MiB
  overlap    measure how much of an MPI_Ibcast a computation of its length hides
  safeguard  measure mode try against the better of its two ways, on good, lossy and slow links
  ranks      measure MPI_Bcast of 32 and 64 ranks on this machine, against Open MPI alone
  sim        measure the simulator against ns-3: packet-hops per second, time to set up, memory
  storage    measure one multicast WRITE against unicasts and a chain; and a volume's writes
  hpl        measure HPL's panel broadcast, row swap and job against its increasing ring and long
  compare    measure one of these on two commits, in turns
TEXT
}

# Each has its own packages and targets, beyond those of MPI programs.
bench_command() {
  local name=${1:-}
  [[ -e bench/$name.py && $name =~ ^(micro|bcast|collectives|overlap|safeguard|ranks|sim|storage|hpl|compare)$ ]] || bench_help | usage
  shift
  if wants_help "$@"; then
    exec /usr/bin/python3 "bench/$name.py" --help
  fi
  case $name in
    micro)
      need "${packages[@]}" "${test_packages[@]}" libbenchmark-dev perftest
      build ;;
    bcast | collectives)
      [[ $name == collectives ]] || need gnuplot-nox
      if [[ "$*" == *mpich* ]]; then
        need mpich libmpich-dev
        build "${runtime_targets[@]}" cepheus-mpi
      else
        build "${runtime_targets[@]}" "mpi_$name"
      fi ;;
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
