#!/usr/bin/python3
"""Builds variants of the Spack recipe from this tree, without Spack, and compares the installed files with the list below.

usage: check.py BUILD [JOBS]

Each combination is configured afresh with the recipe's options. Combinations share objects in BUILD. Exit status 1 if one fails.
"""

import pathlib
import re
import shutil
import subprocess
import sys

import recipe

# Installed files by the variants that they need. BIN(name) stands for a program, its manual page and its completion.
FILES = {
    "": """BIN(cepheus) BIN(cepheus-cmd) BIN(cepheus-replica) SHARED(mcast) SHARED(cepheus-volume) SHARED(cepheus-connections)
        lib/pkgconfig/mcast.pc lib/nbdkit/plugins/nbdkit-cepheus-plugin.so lib/systemd/system/cepheus-cmd.service
        lib/cepheus/fabric-test-pair share/cepheus/fabric-test/box.py share/cepheus/fabric-test/command.py
        share/cepheus/fabric-test/helper.py share/cepheus/fabric-test/mrp.py share/cepheus/fabric-test/pair.py
        share/cepheus/fabric-test/peer.py share/cepheus/fabric-test/probe.py share/cepheus/fabric-test/sockets.py
        share/cepheus/fabric-test/steps.py share/cepheus/fabric-test/way.py share/cepheus/modulefiles/cepheus/VERSION include/cepheus/connections.h include/cepheus/volume.h""",
    "openmpi": "lib/cepheus/openmpi/mca_coll_cepheus.so lib/cepheus/openmpi/libcepheus-coll.so lib/cepheus/openmpi/help-coll-cepheus.txt",
    "pmpi": "lib/cepheus/mpich/libcepheus-mpi.so lib/cepheus/openmpi/libcepheus-mpi.so",
    "ucx": "lib/cepheus/ucx/libuct_rc_mcast.so lib/cepheus/ucx/libcepheus-ucx.so include/mcast/uct.h",
    "nic": "lib/cepheus/libcepheus-roce.so",
    "switch": """BIN(cepheus-switch) BIN(cepheusctl) BIN(cepheus-sim) BIN(cepheus-volume-sim) etc/cepheus/fabric.toml
        lib/systemd/system/cepheus-switch.service lib/systemd/system/cepheus-metrics.service
        share/cepheus/monitoring/cepheus-alerts.yaml share/cepheus/monitoring/cepheus-dashboard.json lib/wireshark/plugins/cepheus.lua""",
    "nic switch": """BIN(cepheus-run) share/cepheus/slurm/common share/cepheus/slurm/prolog share/cepheus/slurm/epilog
        share/cepheus/slurm/task-prolog""",
}
# Variables of CMake's cache that looking for a variant's libraries makes.
LOOKED_FOR = {"openmpi": "MPI_C_", "ucx": "UCX_", "switch": "PCAP_|HTTPLIB_", "dpdk": "DPDK_"}

VERSION = re.search(r"^project\(cepheus VERSION (\S+)", (recipe.SOURCE / "CMakeLists.txt").read_text(), re.MULTILINE).group(1)


def expected(on):
    text = " ".join(files for needed, files in FILES.items() if set(needed.split()) <= on)
    text = re.sub(r"BIN\((\S+)\)", r"bin/\1 share/man/man1/\1.1 share/bash-completion/completions/\1", text)
    text = re.sub(r"SHARED\((\S+)\)", rf"lib/lib\1.so lib/lib\1.so.{VERSION.split('.')[0]} lib/lib\1.so.{VERSION}", text)
    headers = {f"include/mcast/{path.name}" for path in (recipe.SOURCE / "libmcast/include/mcast").glob("*.h")}
    return set(text.replace("VERSION", VERSION).split()) | headers


def run(*command):
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}:\n{done.stdout[-4000:]}")


def check(build, jobs, arguments, on):
    launcher = ["-DCMAKE_C_COMPILER_LAUNCHER=ccache", "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    prefix = build / "prefix"
    run("cmake", "--fresh", "-S", recipe.SOURCE, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=", "-DCMAKE_UNITY_BUILD=ON", *launcher,
        f"-DCMAKE_INSTALL_PREFIX={prefix}", *arguments)
    cache = (build / "CMakeCache.txt").read_text()
    for variant, names in LOOKED_FOR.items():
        if bool(re.search(rf"^({names})", cache, re.MULTILINE)) != (variant in on):
            raise RuntimeError(f"the libraries of {variant} were {'not ' if variant in on else ''}looked for")
    if ("CEPHEUS_DPDK_BUILT:INTERNAL=1" in cache) != ("dpdk" in on):
        raise RuntimeError("the driver for DPDK is built without +dpdk, or not built with it")
    run("cmake", "--build", build, "--target", "installed", *(["-j", jobs] if jobs else []))
    shutil.rmtree(prefix, ignore_errors=True)
    run("cmake", "--install", build)
    installed = {str(path.relative_to(prefix)) for path in prefix.rglob("*") if not path.is_dir()}
    if installed != expected(on):
        raise RuntimeError(f"missing: {sorted(expected(on) - installed)}; not expected: {sorted(installed - expected(on))}")
    return len(installed)


def main():
    if not 2 <= len(sys.argv) <= 3:
        sys.exit(__doc__)
    build, jobs = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2] if len(sys.argv) > 2 else ""
    loaded = recipe.Recipe()
    failed = 0
    combinations = loaded.combinations()
    for on in combinations:
        name = recipe.text_of(on, loaded.variants)
        try:
            files = check(build, jobs, loaded.cmake_args(on), on)
            loaded.test(on, build / "prefix")
            print(f"{name}: {files} files, tests pass", flush=True)
        except (AssertionError, RuntimeError, subprocess.CalledProcessError) as error:
            failed += 1
            print(f"{name}: FAILED: {error}", flush=True)
    print(f"{len(combinations) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
