# ./run check, test, fuzz, mutants, sanitize, odr, matrix: checks of the tree. Sourced by ./run.

build_for_tests() {  # TARGETS...
  need "${packages[@]}" "${test_packages[@]}"
  build "$@"
}

# The names of the tests that ctest chooses by these arguments, and with --packages the packages that they run programs of.
chosen() { /usr/bin/python3 -B tools/run/chosen.py "$build" "$@"; }

# The short suite has unit tests, the simulators' seeds, and broadcasts, sender groups and a volume over live fabrics. It takes
# 12 to 20 minutes, packages and compiling included. It leaves out tests that need one of these packages, because a package
# is large or serves one test.
readonly only_with_all='^needs-(chromium|clang-format|debhelper|environment-modules|gnuplot-nox|libopenblas-serial-dev|mpich|perftest|prometheus|python3-pyverbs|python3-scapy|qemu-system-x86|slurm-wlm|tshark|ucx-utils|valgrind)$'
# It also leaves out tests that run for more than 15 s, or need programs that no other test needs.
long_tests=(
  e2e_connections e2e_demo e2e_live_fault e2e_lost_member e2e_old_kernel e2e_preload e2e_programs e2e_record e2e_safeguard e2e_soak
  e2e_volume e2e_web fabric_test hostile libmcast_e2e onearmed                  # live fabrics
  fabric_sim_checked fabric_sim_core fabric_sim_experiments             # tests of the simulator; its seeds are short
  completion man systemd_units                                          # all that is installed
)
readonly left_out_by_name="^($(IFS='|'; printf '%s' "${long_tests[*]}"))_test\$"

run_ctest() {  # LOG CTEST ARGUMENTS...
  local log=$1
  shift
  mkdir -p "$(dirname "$log")"
  env -u CEPHEUS_REPORT_DIR ctest --test-dir "$build" --output-on-failure --no-tests=error --no-label-summary --timeout 300 -j"$(nproc)" "$@" 2>&1 | tee "$log"
}

test_help() {
  cat <<'TEXT'
usage: ./run test                      run the short suite: unit tests, seeds, and the main paths end to end
       ./run test --all                run every test, and every fuzzer for 15 s
       ./run test CTEST ARGUMENTS      run only those tests: -R NAME, -L unit, --rerun-failed

Each installs and builds only the needs of its tests. The short suite takes 12 to 20 minutes on two cores, packages
and compiling included; its summary names the tests that it leaves out. As another user than root, --all skips the virtual
machine and the browser if their packages are missing.
TEXT
}
test_command() {
  local arguments=("$@") all="" names packages_needed left_out=()
  if [[ ${1:-} == --all ]]; then
    (($# == 1)) || die "test --all takes no arguments of ctest"
    all=yes
    arguments=()
  elif ((!$#)); then
    arguments=(-LE "$only_with_all" -E "$left_out_by_name")
  fi
  need "${packages[@]}" "${test_packages[@]}"
  configure_dev
  mapfile -t names < <(chosen "${arguments[@]}")
  ((${#names[@]})) || die "no test is chosen by: ${arguments[*]}"
  mapfile -t packages_needed < <(chosen --packages "${arguments[@]}")
  if ((EUID == 0)) || [[ ! $all ]]; then
    need "${packages_needed[@]}"
  else
    (need "${packages_needed[@]}") || say "tests that need those packages are SKIPPED"
  fi
  if [[ $all ]]; then
    build
  else
    build "${names[@]}"
  fi
  if ((!$#)); then
    mapfile -t left_out < <(comm -13 <(printf '%s\n' "${names[@]}" | sort) <(chosen | sort))
    left_out+=("every fuzzer")
  fi
  local started=$SECONDS code=0 log=$build/Testing/run.log
  run_ctest "$log" "${arguments[@]}" || code=$?
  if [[ $all ]]; then
    fuzz_command 15 2>&1 | tee -a "$log" || code=$?
  fi
  /usr/bin/python3 tools/run/test_summary.py "$build" "$log" "$((SECONDS - started))" "${left_out[@]}" || code=1
  return "$code"
}

fuzz_help() {
  cat <<'TEXT'
usage: ./run fuzz [SECONDS]

Run every fuzzer for SECONDS (default: 30), with sanitizers, in build/fuzz.
TEXT
}
fuzz_command() {
  [[ ${1:-30} =~ ^[1-9][0-9]*$ ]] || die "fuzz: '$1' is not a number of seconds; example: ./run fuzz 30"
  need "${packages[@]}" "${test_packages[@]}" clang libclang-rt-dev
  configure fuzz -DBUILD_TESTING=ON
  cmake -DCEPHEUS_FUZZ_SECONDS="${1:-30}" build/fuzz >/dev/null
  cmake --build build/fuzz --target fuzzers >&2
  ctest --test-dir build/fuzz --output-on-failure --no-tests=error -L fuzz -j2
}

mutants_help() { exec /usr/bin/python3 -B tools/mutants/mutants.py --help; }
mutants_command() {
  need "${packages[@]}" "${test_packages[@]}"
  exec /usr/bin/python3 -B tools/mutants/mutants.py "$@"
}

sanitize_help() {
  cat <<'TEXT'
usage: ./run sanitize [asan|tsan]... [-- CTEST ARGUMENTS]

Run all unit tests, or those that CTEST ARGUMENTS choose, under AddressSanitizer and UndefinedBehaviorSanitizer, in
build/asan, and under ThreadSanitizer, in build/tsan (default: both). Without CTEST ARGUMENTS an MPI program of four threads
broadcasts under ThreadSanitizer, too.
TEXT
}
sanitize_command() {
  local presets=() preset names code=0
  while (($#)) && [[ $1 != -- ]]; do
    [[ $1 == asan || $1 == tsan ]] || sanitize_help | usage
    presets+=("$1")
    shift
  done
  (($#)) && shift
  local all=
  (($#)) || { all=1; set -- -L unit; }
  ((${#presets[@]})) || presets=(asan tsan)
  need "${packages[@]}" "${test_packages[@]}"
  export UCX_MEM_MMAP_HOOK_MODE=none UCX_MEM_EVENTS=n  # its hooks run in threads that tsan regards as ended
  for preset in "${presets[@]}"; do
    configure "$preset"
    mapfile -t names < <(/usr/bin/python3 -B tools/run/chosen.py "build/$preset" "$@")
    ((${#names[@]})) || die "no test is chosen by: $*"
    say "building with sanitizers, in build/$preset"
    cmake --build "build/$preset" --target "${names[@]}" >&2
    ctest --test-dir "build/$preset" --output-on-failure --no-tests=error "$@" || code=$?
    if [[ $preset == tsan && -n $all ]]; then sanitize_threads || code=$?; fi
  done
  return "$code"
}
# Open MPI is not instrumented: tsan does not see the order that its locks make.
sanitize_threads() {
  cmake --build build/tsan --target "${runtime_targets[@]}" threads_check >&2
  TSAN_OPTIONS=ignore_noninstrumented_modules=1 CEPHEUS_BUILD=$PWD/build/tsan \
    /usr/bin/python3 tests/e2e/programs_test.py Cases.test_threads_on_communicators_of_their_own
}

odr_help() {
  cat <<'TEXT'
usage: ./run odr

Link every library and program as a whole, in build/lto. A name with two definitions in one of them is an error.
TEXT
}
odr_command() {
  need "${packages[@]}"
  configure lto
  say "building whole libraries and programs"
  cmake --build build/lto >&2
}

matrix_help() {
  cat <<'TEXT'
usage: ./run matrix [12|13]... [-- TEST ARGUMENTS]

Run ./run demo and ./run test (or ./run test TEST ARGUMENTS) on these Debian releases (default: both), each in its own
root directory in build/matrix. Needs root.
TEXT
}
matrix_command() {
  need debootstrap
  exec tools/debian/matrix.sh "$@"
}

check_help() {
  cat <<'TEXT'
usage: ./run check

Check the tree before a commit: format, layers, names, man pages, links, all unit tests, and each changed C++ file by
clang-tidy. Changed files are those that are not committed; in a clean checkout, those of the last commit. Needs no
root if its packages are installed.
TEXT
}
check_command() {
  local code=0
  test_command -L unit || code=$?
  need clang-tidy git
  /usr/bin/python3 -B tools/checks/changed_check.py "$build" || code=1
  return "$code"
}
