"""A replicated volume over NBD: nbdkit's plug-in with fio, which verifies its writes."""

import json
import pathlib
import shutil
import subprocess
import sys
import unittest

from harness import BUILD  # it extends the path for the next imports
from switch_process import Switch
from volume_process import Volume, on_host

MIB = 1 << 20
SIZE = 16 * MIB
SECONDS = 120


def fio(volume, *words):
    """Its process; the result goes to fio.json."""
    command = ["fio", "--name=nbd", "--ioengine=nbd", f"--uri={volume.uri}", f"--size={SIZE}", "--output-format=json",
               f"--output={volume.directory / 'fio.json'}", *words]
    return subprocess.Popen(command, cwd=volume.directory, stderr=subprocess.PIPE, text=True)


def result(volume):
    text = (volume.directory / "fio.json").read_text()
    return json.loads(text[text.index("{"):])["jobs"][0]


class Parameters(unittest.TestCase):
    def refusal(self, *words):
        """nbdkit's error message with these parameters."""
        done = subprocess.run(["nbdkit", "--foreground", "--exit-with-parent", "--unix", "-", BUILD / "lib/nbdkit-cepheus-plugin.so", *words],
                              text=True, capture_output=True, timeout=SECONDS, check=False)
        self.assertNotEqual(done.returncode, 0)
        return done.stderr

    def test_missing_parameters_are_named(self):
        self.assertIn("replicas=", self.refusal("volume=v"))

    def test_unknown_parameters_are_refused(self):
        self.assertIn("'replica'", self.refusal("replica=localhost:1"))

    def test_a_depth_out_of_range_is_refused(self):
        self.assertIn("1024", self.refusal("depth=0", "volume=v", "replicas=localhost:1"))

    def test_absent_replicas_are_named(self):
        with Switch(BUILD, "--hosts", "2") as switch:
            done = subprocess.run(["nbdkit", "--foreground", "--exit-with-parent", "--unix", "-", BUILD / "lib/nbdkit-cepheus-plugin.so",
                                   "volume=v", "replicas=127.0.0.1:1", "open-timeout=500"], text=True, capture_output=True,
                                  timeout=SECONDS, check=False, env=on_host(BUILD, switch.socket, 0))
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("127.0.0.1:1", done.stderr)


class Device(unittest.TestCase):
    def setUp(self):
        switch = self.enterContext(Switch(BUILD, "--hosts", "4"))
        self.volume = self.enterContext(Volume(BUILD, switch, size=SIZE))

    def test_fio_reads_its_writes_while_a_replica_dies_and_returns(self):
        job = fio(self.volume, "--rw=randwrite", "--bs=8k", "--iodepth=16", "--rate_iops=1000", "--verify=crc32c", "--verify_fatal=1")
        self.volume.replicas[2].kill()
        self.volume.wait_for_sync(2)
        self.volume.replicas[2].start()
        self.volume.wait_for_sync(3)
        self.assertEqual(job.wait(SECONDS), 0, job.stderr.read())
        job.stderr.close()
        done = result(self.volume)
        self.assertEqual(done["write"]["total_ios"], SIZE // 8192)
        self.assertEqual(done["read"]["total_ios"], SIZE // 8192)
        self.volume.wait_for_sync(3)
        self.volume.stop_nbd()
        check = self.volume.check()
        self.assertEqual(check.returncode, 0, check.stdout + check.stderr)

    def test_requests_of_several_mib_and_flushes_are_served(self):
        job = fio(self.volume, "--rw=write", "--bs=8m", "--iodepth=2", "--fsync=1", "--verify=crc32c", "--verify_fatal=1")
        self.assertEqual(job.wait(SECONDS), 0, job.stderr.read())
        job.stderr.close()

    def test_less_than_a_block_is_refused(self):
        job = fio(self.volume, "--rw=write", "--bs=512", "--number_ios=1")
        self.assertNotEqual(job.wait(SECONDS), 0)
        job.stderr.close()


if __name__ == "__main__":
    missing = [name for name in ("nbdkit", "fio") if shutil.which(name) is None]
    if missing or not pathlib.Path(BUILD / "lib/nbdkit-cepheus-plugin.so").exists():
        print(f"nbd_test: skipped: {' and '.join(missing) or 'the plug-in'} is missing; as root: apt-get install nbdkit nbdkit-plugin-dev fio")
        sys.exit(77)
    unittest.main()
