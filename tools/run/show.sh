# ./run demo, demo-storage, hpl, lab: demonstrations. Sourced by ./run.

demo_help() { exec /usr/bin/python3 tools/demo/demo.py --help; }
demo_command() {
  build "${runtime_targets[@]}"
  exec /usr/bin/python3 tools/demo/demo.py --build "$build" "$@"
}

demo_storage_help() { exec /usr/bin/python3 tools/demo/storage_demo.py --help; }
demo_storage_command() {
  need "${storage_packages[@]}"
  build "${storage_targets[@]}"
  exec /usr/bin/python3 tools/demo/storage_demo.py --build "$build" "$@"
}

hpl_help() { exec /usr/bin/python3 hpl-patches/hpl.py --help; }
hpl_command() {
  need "${packages[@]}" "${hpl_packages[@]}"
  build "${runtime_targets[@]}"
  exec /usr/bin/python3 hpl-patches/hpl.py --build "$build" "$@"
}

# The machine's kernel is downloaded separately, into build/lab.
readonly lab_packages=(qemu-system-x86 busybox-static iproute2 ibverbs-providers ibverbs-utils)

lab_help() {
  cat <<'TEXT'
usage: ./run lab [OPTIONS] [COMMAND...]
       ./run lab demo [FILE]          broadcast a file to every host with plain MPI_Bcast; print the kernel's counters
       ./run lab matrix               try every verbs operation between the emulated NIC and rdma_rxe; print a table
       ./run lab soak [--count N]     broadcast N times (default: 1000) under loss, by each source-change method
       ./run lab ext4 [--files N]     use ext4 on a replicated volume over nbd, while a replica dies and returns

Run COMMAND (default: a shell) in a virtual machine with Debian's kernel. Its hosts have rdma_rxe devices, with
cepheus-switch between them. demo, matrix, soak and ext4 need the tests' libraries, too.

TEXT
  exec /usr/bin/python3 nic-emulator/lab/lab.py --help
}
lab_command() {
  need "${packages[@]}" "${test_packages[@]}" "${lab_packages[@]}"
  local programs=("${runtime_targets[@]}" broadcast_check verbs_pair)
  case ${1:-} in
    demo) shift; set -- /usr/bin/python3 nic-emulator/lab/demo.py "$@" ;;
    matrix) shift; set -- --no-switch /usr/bin/python3 tests/lab/matrix.py "$@" ;;
    soak) shift; set -- --no-switch /usr/bin/python3 tests/lab/soak.py "$@" ;;
    ext4)
      shift
      need "${storage_packages[@]}" nbd-client e2fsprogs
      programs+=("${storage_targets[@]}")
      set -- --no-switch /usr/bin/python3 tests/lab/ext4.py "$@" ;;
  esac
  build "${programs[@]}"
  exec /usr/bin/python3 nic-emulator/lab/lab.py --build "$build" "$@"
}
