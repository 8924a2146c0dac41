#!/usr/bin/python3
"""Check that unit tests notice small changes of the engines: negated conditions, removed calls, constants off by one, moved comparisons.

Each change is built and run against its folder's unit tests, in a copy of the tree in build/mutants. That takes hours. A survivor is
printed as file, line and change: it needs a test, or a comment with the reason why it changes nothing. A table by folder comes last.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import time

import mutations

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The engines, and the unit tests that should notice.
ENGINES = {
    "wire": ["wire_test"],
    "switch-emulator/engine": ["switch_emulator_engine_test"],
    "nic-emulator/engine": ["nic_emulator_engine_test", "nic_emulator_engine_property_test"],
    "controller": ["controller_test", "controller_connections_engine_test"],
    "libmcast/engine": ["libmcast_engine_test"],
    "collectives/core": ["collectives_core_test"],
    "replica/engine": ["replica_engine_test", "replica_sim_test"],
}
# Of the controller only files without sockets; of wire only files that its own tests run.
LEFT_OUT = ("controller/connections/daemon/", "controller/connections/client/", "wire/capture_reader", "wire/icrc_packets", "wire/mrp_packets")
# A change may make a test program run for ever, or take memory for ever.
LONGEST = 300  # seconds, without a change
SLOWER = 10  # times as long as without a change
MOST_MEMORY = 4 << 30  # bytes
FIRST_SEED = "1"  # of tests that begin with another seed every day


class Copy:
    """A copy of the tree's files as they are now, with a build of its own, which stays for the next time."""

    def __init__(self, place, jobs):
        self.tree, self.build, self.jobs, self.time_limits = place / "tree", place / "build", jobs, {}
        listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"], check=True,
                                capture_output=True, text=True).stdout.split("\0")
        names = {name for name in listed if name and (ROOT / name).is_file()}
        for old in [path for path in self.tree.rglob("*") if path.is_file()]:
            if old.relative_to(self.tree).as_posix() not in names:
                old.unlink()
        for name in names:
            source, target = ROOT / name, self.tree / name
            if target.is_file() and target.read_bytes() == source.read_bytes():
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)  # not its time: a run that was ended may have left an object of changed source
        launcher = ["-DCMAKE_C_COMPILER_LAUNCHER=ccache", "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
        subprocess.run(["cmake", "--preset", "dev", "-B", self.build, "-DCEPHEUS_WERROR=OFF",
                        "-DCMAKE_CXX_FLAGS=-O2 -D_GLIBCXX_ASSERTIONS", *launcher], cwd=self.tree, check=True,
                       stdout=subprocess.DEVNULL)

    def builds(self, tests):
        command = ["cmake", "--build", self.build, "-j", str(self.jobs), "--target", *tests]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    def passes(self, test):
        environment = {**os.environ, "CEPHEUS_FIRST_SEED": FIRST_SEED}
        command = ["prlimit", f"--as={MOST_MEMORY}", self.build / "tests" / test, "--gtest_fail_fast", "--gtest_brief=1"]
        time_limit = self.time_limits.get(test, LONGEST)
        began = time.monotonic()
        try:
            passed = subprocess.run(command, env=environment, timeout=time_limit, capture_output=True, check=False).returncode == 0
        except subprocess.TimeoutExpired:
            return False
        self.time_limits.setdefault(test, 5 + SLOWER * (time.monotonic() - began))  # the first time is without a change
        return passed


def is_left_out(mutation):
    return mutation.file.startswith(LEFT_OUT)


def try_one(copy, mutation, tests):
    """"killed", "survived", or "does not build"."""
    path = copy.tree / mutation.file
    original = path.read_text()
    lines = original.splitlines(keepends=True)
    lines[mutation.line] = mutation.after + "\n"
    path.write_text("".join(lines))
    try:
        if not copy.builds(tests):
            return "does not build"
        return "survived" if all(copy.passes(test) for test in tests) else "killed"
    finally:
        path.write_text(original)


def try_folder(copy, folder, seed, count):
    """(killed, survivors) of `count` changes that build."""
    tests = ENGINES[folder]
    if not copy.builds(tests):
        sys.exit(f"{', '.join(tests)} can't be built without a change")
    failing = [test for test in tests if not copy.passes(test)]
    if failing:
        sys.exit(f"{', '.join(failing)} fails without a change")
    killed, survivors = 0, []
    everything = [each for each in mutations.of_folder(copy.tree, folder) if not is_left_out(each)]
    for mutation in mutations.chosen(everything, seed):
        if killed + len(survivors) == count:
            break
        outcome = try_one(copy, mutation, tests)
        killed += outcome == "killed"
        if outcome == "survived":
            survivors.append(mutation)
            print(mutation, flush=True)
    return killed, survivors


def main():
    parser = argparse.ArgumentParser(prog="./run mutants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", metavar="FOLDER", help="change these folders: " + ", ".join(ENGINES) + " (default: all)")
    parser.add_argument("--count", type=int, default=60, metavar="N", help="take N changes of each folder that build (default: %(default)s)")
    parser.add_argument("--short", dest="count", action="store_const", const=3, help="take 3 changes of each folder")
    parser.add_argument("--seed", type=int, default=int(time.time()), metavar="N", help="choose changes by this seed (default: the time)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N", help="run N compilers at a time (default: %(default)s)")
    options = parser.parse_args()
    unknown = set(options.folders) - set(ENGINES)
    if unknown:
        parser.error("unknown: " + ", ".join(sorted(unknown)))
    print(f"seed {options.seed}", flush=True)
    copy = Copy(ROOT / "build/mutants", options.jobs)
    rows, survived = [], 0
    for folder in options.folders or ENGINES:
        killed, survivors = try_folder(copy, folder, options.seed, options.count)
        rows.append(f"| `{folder}` | {killed + len(survivors)} | {killed} | {len(survivors)} |")
        survived += len(survivors)
    print("\n".join(["| folder | changes | noticed | survived |", "|---|---|---|---|", *rows]))
    return bool(survived)


if __name__ == "__main__":
    sys.exit(main())
