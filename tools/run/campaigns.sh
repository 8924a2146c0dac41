# ./run seeds, faults, hostile, volume-kills, soak, longturn, types, reductions: long searches for faults. Sourced by ./run.

seeds_help() { exec /usr/bin/python3 tools/run/seeds.py --help; }
seeds_command() {
  build_for_tests cepheus-sim cepheus-volume-sim broadcast-sim rootless-sim
  exec /usr/bin/python3 tools/run/seeds.py "$build" "$@"
}

faults_help() {
  cat <<'TEXT'
usage: ./run faults [--mpi mpich] [--workload reductions] [MOMENTS]

Break live fabrics under broadcasts, at MOMENTS random moments (default: 20) for each fault, first on one switch, then on
a fat-tree. Data must be right each time. --mpi mpich: calls of MPICH's programs, not of Open MPI's. --workload
reductions: reductions, barriers and gathers among the broadcasts, each bit checked.
TEXT
}
faults_command() {
  local failed=0 mpi=openmpi workload=broadcasts arguments=()
  while [[ ${1:-} == --* ]]; do
    case $1 in
      --mpi) mpi=${2:-} ;;
      --workload) workload=${2:-} ;;
      *) faults_help | usage ;;
    esac
    shift 2 || shift
  done
  [[ $workload == broadcasts || $workload == reductions ]] || faults_help | usage
  arguments=(--mpi "$mpi" --workload "$workload" --moments "${1:-20}")
  case $mpi in
    openmpi) build_for_tests "${runtime_targets[@]}" broadcast_check reductions_check ;;
    mpich)
      need mpich libmpich-dev
      build_for_tests "${runtime_targets[@]}" cepheus-mpi ;;
    *) faults_help | usage ;;
  esac
  export CEPHEUS_BUILD=$PWD/$build
  /usr/bin/python3 tests/e2e/live_fault_test.py "${arguments[@]}" || failed=1
  [[ $mpi == openmpi ]] || arguments+=(--within 60) # 16 of MPICH's ranks spin on this machine's cores
  /usr/bin/python3 tests/e2e/trunk_fault_test.py "${arguments[@]}" || failed=1
  return $failed
}

hostile_help() {
  cat <<'TEXT'
usage: ./run hostile [--sanitize] [OPTIONS] [ATTACK...]

Measure the throughput that hostile hosts take from others, against a CPU load: floods; abused rings, doorbells and
sockets. At least 80 % must remain, beside two hosts that stream to each other 50 %. Then open unknown connections to
every socket of every daemon; memory and descriptors must not grow.
--sanitize: run switch, hosts and daemons under AddressSanitizer; speeds and memory are not judged.

TEXT
  exec /usr/bin/python3 tests/hostile/hostile.py --help
}
hostile_command() {
  build_for_tests "${runtime_targets[@]}" broadcast_check steady_check hostile_host cepheus-cmd cepheus-replica
  if [[ ${1:-} == --sanitize ]]; then
    shift
    configure asan
    say "building switch and hosts with sanitizers"
    cmake --build build/asan --target cepheus-switch cepheusctl cepheus-cmd cepheus-replica cepheus-roce hostile_host >&2
    set -- --sanitized build/asan "$@"
  fi
  CEPHEUS_BUILD=$PWD/$build exec /usr/bin/python3 tests/hostile/hostile.py "$@"
}

volume_kills_help() { exec /usr/bin/python3 tests/e2e/volume_kills.py --help; }
volume_kills_command() {
  build_for_tests "${runtime_targets[@]}" cepheus-replica volume_user
  CEPHEUS_BUILD=$PWD/$build exec /usr/bin/python3 tests/e2e/volume_kills.py "$@"
}

soak_help() {
  cat <<'TEXT'
usage: ./run soak [COUNT]

Broadcast COUNT times (default: 1000000), for an hour at most. Memory, descriptors and switch tables may not grow.
TEXT
}
soak_command() {
  build_for_tests "${runtime_targets[@]}" soak_check
  CEPHEUS_BUILD=$PWD/$build exec /usr/bin/python3 tests/e2e/soak_test.py --count "${1:-1000000}"
}

longturn_help() {
  cat <<'TEXT'
usage: ./run longturn [--packets N]

Broadcast N packets of 256 bytes (default: 9000000) from one root, then from the others, on a live leaf-spine fabric, by
each method of changing the source. Such a turn is longer than the range in which PSNs can be compared.
TEXT
}
longturn_command() {
  build_for_tests "${runtime_targets[@]}" long_turn_check
  [[ $# -gt 0 ]] || set -- --packets 9000000
  CEPHEUS_BUILD=$PWD/$build exec /usr/bin/python3 tests/e2e/long_turn_test.py "$@"
}

types_help() {
  cat <<'TEXT'
usage: ./run types [COUNT]

Broadcast COUNT random datatypes (default: 10000) in mode require.
TEXT
}
types_command() {
  build_for_tests "${runtime_targets[@]}" types_check
  CEPHEUS_BUILD=$PWD/$build exec /usr/bin/python3 tests/e2e/types_test.py --cases "${1:-10000}" -v
}

reductions_help() {
  cat <<'TEXT'
usage: ./run reductions [--mpi mpich] [COUNT] [--pairwise BYTES] [--seed S] [--first I]

Run COUNT cases (default: 10000) of random reductions, barriers and gathers in mode require, and half as many each with
threads and with several ranks on a host. Every bit is compared with a reference. --pairwise 32768: calls with up to
32768 bytes of all ranks together must have the bits of a reduction pairwise by rank, as the network's have. Each run
prints its seed; --seed and --first repeat a case. --mpi mpich: MPICH's programs, not Open MPI's.
TEXT
}
reductions_command() {
  local mpi=openmpi count=10000
  if [[ ${1:-} == --mpi ]]; then
    mpi=${2:-}
    shift 2 || shift
  fi
  case $mpi in
    openmpi) build_for_tests "${runtime_targets[@]}" reductions_check ;;
    mpich)
      need mpich libmpich-dev
      build_for_tests "${runtime_targets[@]}" cepheus-mpi ;;
    *) reductions_help | usage ;;
  esac
  if [[ ${1:-} =~ ^[0-9]+$ ]]; then
    count=$1
    shift
  fi
  export CEPHEUS_BUILD=$PWD/$build
  exec /usr/bin/python3 tests/e2e/reductions_test.py --mpi "$mpi" --cases "$count" "$@" -v RandomReductions
}
