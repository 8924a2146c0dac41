#!/usr/bin/python3
"""Completion of our programs in bash.

usage: completion_test.py BUILD [-v]
"""

import os
import pathlib
import shlex
import subprocess
import sys
import unittest

BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
COMPLETION = pathlib.Path(__file__).resolve().parent / "cepheus"
BASH_COMPLETION = pathlib.Path("/usr/share/bash-completion/bash_completion")


def complete(line):
    """The completions of bash at the end of `line`."""
    words = line.split(" ")
    script = f"""
source {BASH_COMPLETION}; source {COMPLETION}
COMP_WORDS=({shlex.join(words)}) COMP_CWORD={len(words) - 1} COMP_LINE={shlex.quote(line)} COMP_POINT={len(line)}
{"COMP_WORDS+=('')" if line.endswith(" ") and words[-1] else ""}
compopt() {{ :; }}
_cepheus {words[0]} {shlex.quote(words[-1])} {words[-2] if len(words) > 1 else ''}
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(["bash", "--norc", "-c", script], text=True, capture_output=True, timeout=60,
                          env={**os.environ, "PATH": f"{BUILD}/bin:{os.environ['PATH']}"})
    assert done.stderr == "", done.stderr
    return done.stdout.split()


class Completion(unittest.TestCase):
    def test_of_commands(self):
        self.assertEqual(complete("cepheusctl me"), ["metrics"])
        self.assertEqual(complete("cepheusctl --fabric x co"), ["counters"])
        self.assertEqual(complete("cepheusctl ne"), ["nearest"])
        self.assertEqual(complete("cepheus "), ["doctor", "fabric-test"])
        self.assertEqual(complete("cepheus-replica st"), ["status"])

    def test_of_options_matches_the_programs(self):
        self.assertEqual(complete("cepheusctl metrics --li"), ["--listen"])
        self.assertEqual(complete("cepheusctl link h0 --di"), ["--direction"])
        self.assertEqual(complete("cepheus-switch --to"), ["--topology"])
        self.assertEqual(complete("cepheus-cmd st"), ["status"])
        self.assertEqual(complete("cepheus-run --pc"), ["--pcap"])
        self.assertIn("--seeds", complete("cepheus-sim --"))

    def test_of_what_options_take(self):
        self.assertEqual(complete("cepheus-switch --shape le"), ["leaf-spine:"])
        self.assertEqual(complete("cepheusctl link h0 --direction to-h"), ["to-host"])
        self.assertEqual(complete("cepheus-switch --hosts "), [])

    def test_of_experiments_is_what_the_simulator_lists(self):
        self.assertEqual(complete("cepheus-sim ex"), ["experiment"])
        self.assertEqual(complete("cepheus-sim experiment cepheus-m"), ["cepheus-memory"])
        self.assertEqual(complete("cepheus-sim experiment --qu"), ["--quick"])

    def test_behind_two_dashes_is_a_command_of_its_own(self):
        self.assertIn("bash", complete("cepheus-run --hosts 2 -- bas"))

    def test_of_commands_is_complete(self):
        help_text = subprocess.run([BUILD / "bin/cepheusctl", "--help"], text=True, capture_output=True, check=True).stdout
        listed = help_text.split("Subcommands:", 1)[1].splitlines()
        commands = {line.split()[0] for line in listed if line.startswith("  ") and line[2] != " "}
        self.assertEqual(set(complete("cepheusctl ")), commands)


if __name__ == "__main__":
    if not BASH_COMPLETION.exists():
        print("SKIPPED: bash-completion is missing; install it to test the completions")
        sys.exit(77)
    unittest.main()
