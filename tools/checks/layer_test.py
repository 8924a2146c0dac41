#!/usr/bin/python3
"""Checks every include against the table of layers below. Each folder's README has its row of the table.

A finding is "file:line: rule". Engines have more rules: they do no I/O and read no clock.
usage: layer_test.py [-v]        (a unittest program; CEPHEUS_SOURCE names another tree)
"""

import os
import pathlib
import re
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("CEPHEUS_SOURCE", pathlib.Path(__file__).resolve().parents[2]))

ARITHMETIC = "arithmetic"
WIRE = "wire"
NET = "net"
REPORTS = "support/reports"
RECORDING = "support/recording"
LOCALITY = "support/locality"
ROUTING = "support/routing"
COMMAND_LINE = "support/command_line"
ENGINES = ["nic-emulator/engine", "switch-emulator/engine", "controller", "libmcast/engine"]
PORTS = "switch-emulator/ports"
LIVE = "switch-emulator/live"
LIVE_STATUS, LIVE_DATAPATH, LIVE_CONTROL = LIVE_PARTS = [f"{LIVE}/status", f"{LIVE}/datapath", f"{LIVE}/control"]
SIM_CORE = "fabric-sim/core"
SIM_CHECKED = "fabric-sim/checked"
SIM_EXPERIMENTS = "fabric-sim/experiments"
BELOW_DRIVERS = [WIRE, NET, *ENGINES, PORTS]
DRIVERS = ["nic-emulator/verbs", *LIVE_PARTS, LIVE, "switch-emulator/tools", SIM_CORE, SIM_CHECKED, SIM_EXPERIMENTS, "fabric-sim"]
VOLUME = "replica/engine"
C_API = "libmcast/include"
UCT_API = "ucx-transport/include"
VOLUME_API = "replica/include"
CONNECTIONS = "controller/connections/engine"
CONNECTIONS_API = "controller/connections/include"
COLL = "collectives"
COLL_CORE, COLL_HOST, COLL_REPORTS, COLL_GROUP, COLL_UNITS = COLL_PARTS = [
    "collectives/core", "collectives/host_mpi.h", "collectives/reports", "collectives/group", "collectives/units"]
VOLUME_PATHS = ["replica/rdma", "replica/server", "replica/volume"]

# Folder -> folders it may include from, besides itself. The longest matching folder counts.
# The lowest layer first: no folder includes a folder below it in this table.
MAY_INCLUDE = {
    ARITHMETIC: [],
    WIRE: [],
    NET: [WIRE],
    REPORTS: [WIRE],
    RECORDING: [WIRE],
    LOCALITY: [WIRE],
    ROUTING: [WIRE],
    COMMAND_LINE: [],
    "nic-emulator/engine": [WIRE],
    "switch-emulator/engine": [ARITHMETIC, WIRE, NET],
    "controller": [ARITHMETIC, WIRE],
    PORTS: [WIRE, ROUTING],
    "nic-emulator/verbs": [WIRE, "nic-emulator/engine", PORTS],
    LIVE_STATUS: [ARITHMETIC, WIRE, NET, "switch-emulator/engine", PORTS],
    LIVE_DATAPATH: [WIRE, NET, RECORDING, "switch-emulator/engine", PORTS, LIVE_STATUS],
    LIVE_CONTROL: [WIRE, NET, RECORDING, "switch-emulator/engine", PORTS, LIVE_STATUS, LIVE_DATAPATH],
    LIVE: [WIRE, NET, RECORDING, "switch-emulator/engine", PORTS, *LIVE_PARTS],
    "switch-emulator/tools": [WIRE, NET, COMMAND_LINE, LOCALITY, REPORTS, RECORDING, PORTS, *LIVE_PARTS, LIVE],
    SIM_CORE: [WIRE, NET, RECORDING, *ENGINES],
    SIM_CHECKED: [ARITHMETIC, WIRE, NET, COMMAND_LINE, RECORDING, *ENGINES, SIM_CORE],
    SIM_EXPERIMENTS: [WIRE, NET, *ENGINES, SIM_CORE],
    "fabric-sim": [WIRE, NET, COMMAND_LINE, *ENGINES, SIM_CORE, SIM_CHECKED, SIM_EXPERIMENTS],
    C_API: [],
    "libmcast/engine": [ARITHMETIC, WIRE, "controller"],
    "libmcast": [ARITHMETIC, WIRE, LOCALITY, ROUTING, "controller", "libmcast/engine", C_API],
    UCT_API: [],
    "ucx-transport": [],
    COLL_CORE: [WIRE],
    COLL_HOST: [COLL_CORE],
    COLL_REPORTS: [WIRE, REPORTS],
    COLL_GROUP: [ARITHMETIC, WIRE, COLL_CORE, COLL_HOST, COLL_REPORTS],
    COLL_UNITS: [ARITHMETIC, WIRE, COLL_CORE, COLL_HOST, COLL_GROUP],
    COLL: [ARITHMETIC, WIRE, *COLL_PARTS],
    "collectives/fakes": [ARITHMETIC, COLL, *COLL_PARTS],
    "collectives/sim": [COLL, *COLL_PARTS, "collectives/fakes", WIRE, "nic-emulator/engine", SIM_CHECKED],
    "ompi-coll": [COLL, *COLL_PARTS],
    "pmpi": [COLL, *COLL_PARTS],
    VOLUME: [WIRE],
    "replica/sim": [WIRE, VOLUME, SIM_CORE, SIM_CHECKED],
    VOLUME_API: [],
    "replica/control": [WIRE, VOLUME],
    "replica/rdma": [WIRE, VOLUME, "replica/control"],
    "replica/server": [WIRE, VOLUME, "replica/control", "replica/rdma"],
    "replica/volume": [WIRE, VOLUME, "controller", "replica/control", "replica/rdma"],
    "replica/nbdkit": [],
    "replica/tools": [WIRE, COMMAND_LINE, VOLUME, "replica/control", "replica/server"],
    "replica/e2e": [WIRE],
    CONNECTIONS_API: [],
    CONNECTIONS: [WIRE, "controller"],
    "controller/connections/client": [WIRE, CONNECTIONS],
    "controller/connections/daemon": [WIRE, COMMAND_LINE, CONNECTIONS, "controller/connections/client"],
    "controller/connections/e2e": [],
    "libmcast/e2e": ["libmcast", "examples", C_API, *BELOW_DRIVERS, *DRIVERS],  # tests over a live fabric
    "ucx-transport/e2e": ["libmcast/e2e", "examples"],
    "bench": [ARITHMETIC, *BELOW_DRIVERS, *DRIVERS],  # micro-benchmarks of the parts
    "tests": [ARITHMETIC, *BELOW_DRIVERS, *DRIVERS],
    "tests/e2e/call_reports.cc": [COLL_REPORTS],
    "tests/mpi/abi_check.cc": ["pmpi"],
    "tests/mpi/tags_check.cc": ["ompi-coll", "tests"],  # it speaks on Open MPI's own tags, as another component would
    "examples": [],  # public interfaces alone: BORDERS
    "tools": [],
    "hpl-patches": [],
}

# Folder -> folders that only its tests may include: they need a peer.
TESTS_MAY_INCLUDE = {
    "nic-emulator/verbs": [*LIVE_PARTS, LIVE],
    LIVE_STATUS: [LIVE],  # of a fabric at work
    LIVE_DATAPATH: [LIVE],
    LIVE_CONTROL: [LIVE],
    "controller": [NET],  # both have the same times
    "replica/server": ["libmcast"],  # its fake device
    **{folder: ["collectives/fakes"] for folder in [COLL, COLL_GROUP, COLL_UNITS]},
}

# Other projects' headers that mark a border -> which folders or files may include them.
BORDERS = {
    r"infiniband/verbs\.h$": ["nic-emulator/verbs", "libmcast", "libmcast/e2e", *VOLUME_PATHS, "tests", "bench", "tools"],
    r"hwloc": [LOCALITY],
    r"(infiniband|rdma)/": [],  # the rest is private to rdma-core, or librdmacm
    r"mcast/uct\.h$": ["ucx-transport", "ucx-transport/e2e", "collectives/group/uct_channel.h"],
    r"mcast/": ["examples", "libmcast", "libmcast/engine", "libmcast/e2e", C_API, UCT_API, "ucx-transport", "ucx-transport/e2e", COLL, COLL_GROUP, COLL_UNITS, "collectives/fakes", *VOLUME_PATHS, "tests", "bench"],
    r"cepheus/connections\.h$": ["examples", "controller/connections/client", "controller/connections/e2e", CONNECTIONS_API, "tests", "bench"],
    r"cepheus/": ["examples", "replica/volume", "replica/nbdkit", "replica/e2e", VOLUME_API, "tests", "bench"],
    r"uct/api/": ["examples", UCT_API, "ucx-transport", "ucx-transport/e2e", "collectives/group/uct_channel.h", "collectives/group/uct_channel.cc", "tests"],
    r"uc[ts]/": ["examples", "ucx-transport", "ucx-transport/e2e"],
    r"ucp/": [],
    r"wire/clock\.h$": [*DRIVERS, "switch-emulator/ports/processor.cc", "libmcast", "libmcast/e2e", COLL_REPORTS, *VOLUME_PATHS, "replica/tools", "controller/connections/daemon", "tests", "bench"],  # no engine
    r"(ompi|opal|orte)/|ompi_config\.h$": ["ompi-coll"],
    r"mpi\.h$": ["ompi-coll", "bench", "tests", "tests/mpi/abi_check.cc", "tools", "hpl-patches"],
}

# Forbidden in engines, which get packets and the time as arguments (docs/architecture.md).
ENGINE_BANS = {
    r"\b(steady|system|high_resolution)_clock\b|\bclock_gettime\b|\bgettimeofday\b": "reads a clock",
    r"\bstd::(j?thread|mutex|condition_variable|async|atomic)\b|\bpthread_": "uses threads",
    r"\bsocket\s*\(": "opens a socket",
    # The text of a failed assertion, right before abort(), is not a log.
    r"(\b[dfv]*printf|\bputs)\s*\((?![^\n]*\n\s*std::abort\(\))|\bstd::(cout|cerr|clog)\b|\bspdlog\b": "prints or logs",
    r"\bsleep_for\b|\busleep\b": "sleeps",
}

CLOCK = "wire/clock.h"

CODE = {".h", ".c", ".cc"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
# Comments, string and character literals are not code. Line breaks stay, so that lines keep their numbers.
NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)


def longest_match(path, folders):
    matching = [f for f in folders if path == f or path.startswith(f + "/")]
    return max(matching, key=len, default=None)


def is_of_tests(path):
    """A test, or a file that tests share."""
    return re.search(r"(_test|_testing|_fuzz)\.\w+$|/test_[^/]*$", path) is not None


def is_beside_the_engine(path, text):
    """Tests, their shared files, and small programs lie in the engine's folder."""
    return is_of_tests(path) or re.search(r"^int main\(", text, re.M)


def may_include(path, layer, target):
    return (target == layer or target in MAY_INCLUDE[layer] or
            (is_of_tests(path) and target in TESTS_MAY_INCLUDE.get(layer, [])))


def without_comments(text):
    return NO_CODE.sub(lambda m: "\n" * m.group().count("\n"), text)


class LayerTable:
    """The findings about one source tree."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.findings = []
        self.files = 0
        for path in sorted(self.source_files()):
            self.files += 1
            self.check(path)

    def source_files(self):
        for top in self.root.iterdir():
            if not top.is_dir() or top.name.startswith(".") or top.name == "build":
                continue
            for path in top.rglob("*"):
                if path.suffix in CODE and path.is_file():
                    yield path.relative_to(self.root).as_posix()

    def find(self, path, line, rule):
        self.findings.append(f"{path}:{line}: {rule}")

    def check(self, path):
        layer = longest_match(path, MAY_INCLUDE)
        if layer is None:
            self.find(path, 1, "this folder has no row in the layer table")
            return
        data = (self.root / path).read_bytes()
        if b"\0" in data:
            self.find(path, data[: data.index(b"\0")].count(b"\n") + 1, "a zero byte in a source file")
        text = data.decode(errors="replace")
        for number, line in enumerate(text.splitlines(), 1):
            include = INCLUDE.match(line)
            if include:
                self.check_include(path, number, layer, include.group(1) or include.group(2), include.group(1) is not None)
        if (layer in [ARITHMETIC, WIRE, VOLUME, CONNECTIONS, *ENGINES]) and path != CLOCK and not is_beside_the_engine(path, text):
            code = without_comments(text)
            for pattern, what in ENGINE_BANS.items():
                for found in re.finditer(pattern, code):
                    self.find(path, code[: found.start()].count("\n") + 1, f"{layer} is an engine: it never {what}")

    def check_include(self, path, number, layer, header, quoted):
        for pattern, allowed in BORDERS.items():
            if re.match(pattern, header):
                if layer not in allowed and path not in allowed:
                    self.find(path, number, f"{layer} may not include {header}")
                return
        if not (self.root / header).is_file():
            if quoted:
                self.find(path, number, f'"{header}" is no file of this tree: write includes from its root')
            return
        target = longest_match(header, MAY_INCLUDE)
        if not quoted:
            self.find(path, number, f"our own {header} is included with quotes")
        elif not may_include(path, layer, target):
            self.find(path, number, f"{layer} may not include {target} ({header})")


class OurTree(unittest.TestCase):
    def test_keeps_to_the_layer_table(self):
        table = LayerTable(SOURCE)
        self.assertGreater(table.files, 50, f"{SOURCE} is not the source tree")
        self.assertEqual(table.findings, [], "\n" + "\n".join(table.findings))

    def test_has_a_readme_in_each_folder(self):
        folders = {path.partition("/")[0] for path in MAY_INCLUDE}
        self.assertEqual([f for f in sorted(folders) if not (SOURCE / f / "README.md").is_file()], [])


class Rules(unittest.TestCase):
    """The check itself: small trees, each with one mistake (or none)."""

    def findings(self, **files):
        with tempfile.TemporaryDirectory(prefix="cepheus-layers-") as root:
            for name, text in files["tree"].items():
                path = pathlib.Path(root) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return LayerTable(root).findings

    def test_an_engine_may_include_wire(self):
        tree = {"wire/types.h": "", "nic-emulator/engine/nic.cc": '#include <vector>\n#include "wire/types.h"\n'}
        self.assertEqual(self.findings(tree=tree), [])

    def test_no_engine_includes_the_clock_and_drivers_do(self):
        clock = {"wire/clock.h": "inline auto now() { return std::chrono::steady_clock::now(); }\n"}
        for path in ["wire/a.h", "net/a.h", "nic-emulator/engine/a.h", "switch-emulator/engine/a.h", "controller/a.h",
                     "replica/engine/a.h"]:
            self.assertEqual(len(self.findings(tree={**clock, path: '#include "wire/clock.h"\n'})), 1, path)
        self.assertEqual(self.findings(tree={**clock, "nic-emulator/verbs/a.h": '#include "wire/clock.h"\n'}), [])

    def test_wire_may_not_include_an_engine(self):
        tree = {"nic-emulator/engine/nic.h": "", "wire/types.h": '// one\n#include "nic-emulator/engine/nic.h"\n'}
        self.assertEqual(self.findings(tree=tree),
                         ["wire/types.h:2: wire may not include nic-emulator/engine (nic-emulator/engine/nic.h)"])

    def test_engines_may_not_include_each_other_nor_drivers(self):
        tree = {"nic-emulator/engine/nic.h": "", "switch-emulator/ports/ring.h": "",
                "switch-emulator/engine/switch.cc": '#include "nic-emulator/engine/nic.h"\n#include "switch-emulator/ports/ring.h"\n'}
        self.assertEqual(len(self.findings(tree=tree)), 2)

    def test_nothing_includes_what_stands_above_it(self):
        floors = {"wire/a.h": "", "net/a.h": "", "switch-emulator/engine/a.h": "", "switch-emulator/live/a.h": "",
                  "fabric-sim/core/a.h": "", "fabric-sim/checked/a.h": ""}
        for includer, above in [("net/b.h", "switch-emulator/engine/a.h"), ("switch-emulator/engine/b.h", "switch-emulator/live/a.h"),
                                ("fabric-sim/core/b.h", "fabric-sim/checked/a.h"), ("fabric-sim/core/b.h", "switch-emulator/live/a.h")]:
            found = self.findings(tree={**floors, includer: f'#include "{above}"\n'})
            self.assertEqual([f.split(": ")[0] for f in found], [f"{includer}:1"], includer)
        for includer, below in [("net/b.h", "wire/a.h"), ("switch-emulator/engine/b.h", "net/a.h"),
                                ("fabric-sim/checked/b.h", "fabric-sim/core/a.h")]:
            self.assertEqual(self.findings(tree={**floors, includer: f'#include "{below}"\n'}), [], includer)

    def test_a_neighbour_may_be_for_tests_only(self):
        tree = {"switch-emulator/live/test_fabric.h": "", "nic-emulator/verbs/nic_test.cc": '#include "switch-emulator/live/test_fabric.h"\n'}
        self.assertEqual(self.findings(tree=tree), [])
        tree["nic-emulator/verbs/nic.cc"] = tree["nic-emulator/verbs/nic_test.cc"]
        self.assertEqual([f.split(": ")[0] for f in self.findings(tree=tree)], ["nic-emulator/verbs/nic.cc:1"])

    def test_libmcast_may_not_include_the_nic_or_the_switch(self):
        tree = {"nic-emulator/verbs/device/device.h": "", "libmcast/group.cc": '#include "nic-emulator/verbs/device/device.h"\n'}
        self.assertEqual(len(self.findings(tree=tree)), 1)
        tree = {"controller/registration.h": "", "libmcast/group.cc":
                '#include <infiniband/verbs.h>\n#include "controller/registration.h"\n#include "libmcast/group.h"\n', "libmcast/group.h": ""}
        self.assertEqual(self.findings(tree=tree), [])

    def test_private_verbs_headers_are_nobodys(self):
        self.assertEqual(self.findings(tree={"libmcast/qp.cc": "#include <infiniband/driver.h>\n"}),
                         ["libmcast/qp.cc:1: libmcast may not include infiniband/driver.h"])

    def test_the_plugins_see_public_interfaces_only(self):
        tree = {"libmcast/group.h": "", "ucx-transport/endpoint.cc": '#include "libmcast/group.h"\n'}
        self.assertEqual(len(self.findings(tree=tree)), 1)
        tree = {"ompi-coll/module.cc": '#include <ucs/type/class.h>\n#include <infiniband/verbs.h>\n#include <uct/api/uct.h>\n'
                                       '#include <mcast/mcast.h>\n#include "ompi/mca/coll/coll.h"\n'}
        self.assertEqual([f.split(": ")[0] for f in self.findings(tree=tree)], [f"ompi-coll/module.cc:{line}" for line in (1, 2, 3, 4)])

    def test_collectives_know_no_mpi_implementation(self):
        tree = {"ompi-coll/module.h": "", "collectives/host_mpi.h": "", "collectives/bcast.cc":
                '#include <mcast/mcast.h>\n#include "collectives/host_mpi.h"\n#include "ompi/mca/coll/coll.h"\n#include <mpi.h>\n'
                '#include "ompi-coll/module.h"\n'}
        self.assertEqual([f.split(": ")[0] for f in self.findings(tree=tree)], [f"collectives/bcast.cc:{line}" for line in (3, 4, 5)])

    def test_engines_read_no_clock_and_do_no_io(self):
        for code, what in [("auto t = std::chrono::steady_clock::now();", "reads a clock"),
                           ("clock_gettime(CLOCK_MONOTONIC, &t);", "reads a clock"), ("std::mutex m;", "uses threads"),
                           ("int s = socket(AF_INET, 0, 0);", "opens a socket"), ('fprintf(stderr, "x");', "prints or logs"),
                           ('spdlog::info("x");', "prints or logs")]:
            found = self.findings(tree={"controller/a.cc": f"int x;\n{code}\n"})
            self.assertEqual(found, [f"controller/a.cc:2: controller is an engine: it never {what}"], code)

    def test_words_in_comments_and_texts_are_no_code(self):
        tree = {"controller/a.cc": '// std::mutex\n/* socket(\n printf( */ const char* s = "printf(\\"";\n'
                                   "snprintf(buffer, 4, s); std::chrono::nanoseconds t;\n"}
        self.assertEqual(self.findings(tree=tree), [])

    def test_tests_and_programs_beside_engines_may_print(self):
        for name, text in [("a_test.cc", 'printf("x");'), ("test_network.h", 'printf("x");'), ("a.cc", 'int main() {\n  printf("x");\n}')]:
            self.assertEqual(self.findings(tree={f"controller/{name}": text + "\n"}), [], name)

    def test_a_failed_assertion_may_name_its_reason(self):
        print_it = '  std::fprintf(stderr, "%s", what);\n'
        self.assertEqual(self.findings(tree={"controller/a.h": print_it + "  std::abort();\n"}), [])
        self.assertEqual(len(self.findings(tree={"controller/a.h": print_it + "  other();\n  std::abort();\n"})), 1)

    def test_includes_are_written_from_the_root(self):
        tree = {"controller/a.h": "", "controller/a.cc": '#include "a.h"\n#include <controller/a.h>\n'}
        self.assertEqual([f.split(": ")[0] for f in self.findings(tree=tree)], ["controller/a.cc:1", "controller/a.cc:2"])

    def test_a_new_folder_needs_a_row(self):
        self.assertEqual(self.findings(tree={"novelty/a.cc": ""}), ["novelty/a.cc:1: this folder has no row in the layer table"])


if __name__ == "__main__":
    unittest.main()
