#!/usr/bin/python3
"""Programs of the emulated NIC under valgrind, which must find no error in them."""

import os
import subprocess
import tempfile
import unittest

from harness import BUILD
from live import TIME_LIMIT, Switch


class Valgrind(unittest.TestCase):
    def test_finds_no_error_in_members_of_a_group(self):
        with Switch("--hosts", 2) as switch, tempfile.TemporaryDirectory() as meeting:
            env = {**os.environ, "CEPHEUS_FABRIC": switch.socket, "LD_PRELOAD": str(BUILD / "lib/libcepheus-roce.so")}
            command = ["valgrind", "--quiet", "--error-exitcode=9", BUILD / "examples/group"]
            members = [subprocess.Popen([*command, str(rank), "2", meeting], text=True, env={**env, "CEPHEUS_HOST": f"h{rank}"},
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for rank in range(2)]
            texts = [member.communicate(timeout=TIME_LIMIT)[0] for member in members]
            self.assertEqual([member.returncode for member in members], [0, 0], "\n".join(texts))


if __name__ == "__main__":
    unittest.main()
