#!/usr/bin/python3
"""Volumes of real processes: written data survives kills of all programs; access to writes, and the replicas' status."""

import contextlib
import errno
import json
import os
import pathlib
import random
import resource
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import unittest

from connections_test import frame
from harness import BUILD, PROGRAMS, REQUIRE, mca_arguments, star
from live import wait_until
from volume_kills import Campaign
from volumes import BLOCK, REPLICA, Volume, on_host

WRITES = 200
PAUSE_SECONDS = 40  # ten times a campaign's limit
VERSION, HELLO, STATUS_REQUEST, DIGEST_REQUEST, OBSERVER, NONCE, TAG, DIGEST = 4, 2, 7, 9, 2, 16, 20, 16  # replica/control/messages.h
RECORD_SLOT = 8192  # bytes of one of the record's two slots, in these volumes


class Volumes(unittest.TestCase):
    def check(self, volume):
        return volume.run_tool("check", "--volume", "v", "--replicas", volume.addresses)

    def assert_alike(self, volume):
        checked = self.check(volume)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)

    def status(self, replica):
        result = subprocess.run([str(REPLICA), "status", "--json", replica.address], text=True, capture_output=True, timeout=60, check=True)
        return json.loads(result.stdout)

    def write(self, volume, *options):
        """A user that writes a little and ends."""
        user = volume.start_user("--writes", WRITES, *options)
        self.assertEqual(user.finish(), 0, user.tail() + volume.logs())

    def test_survives_kills_of_all_programs(self):
        seed = int(os.environ.get("CEPHEUS_SEED", random.randrange(1 << 20)))
        print(f"seed {seed}", flush=True)
        for multicast, count in (("cepheus", 6), ("mcrdma", 4)):
            with self.subTest(multicast), Volume() as volume:
                Campaign(volume, seed, multicast, within=PAUSE_SECONDS).run(count)

    def test_keeps_written_data_after_all_programs_restarted(self):
        for options in (), ("--cache", "direct"):
            with self.subTest(options=options), Volume(options=options) as volume:
                self.write(volume)
                for replica in volume.replicas:
                    self.assertEqual(replica.end(), 0, volume.logs())
                    replica.start()
                user = volume.start_user("--verify")
                self.assertEqual(user.finish(), 0, user.tail() + volume.logs())
                self.assert_alike(volume)

    def test_survives_kills_with_direct_io(self):
        with Volume(options=("--cache", "direct")) as volume:
            Campaign(volume, 1, within=PAUSE_SECONDS).run(3, ("replica_killed",))

    def test_a_flush_after_the_last_replicas_death_fails_if_data_is_lost(self):
        """The user gets EIO, and the status names the bytes that were acknowledged and not flushed. Flushed data exists."""
        for _ in range(10):  # a disk may have all data before the kill
            with Volume(replicas=2, size="16M", options=("--cache", "direct")) as volume:
                if self.loses_unflushed_data(volume):
                    return
        self.fail("no attempt lost data: run it on a disk with a page cache (TMPDIR)")

    def loses_unflushed_data(self, volume):
        """False: the user has read its writes."""
        away, last = volume.replicas
        flush_file = volume.directory / "flush"
        flush_file.touch()
        self.write(volume, "--flush-when", flush_file)
        flush_file.unlink()
        user = volume.start_user("--idle-until", volume.go, "--writes", 4, "--depth", 1, "--flush-when", flush_file, seed=2)
        user.await_event("idle")
        away.kill()
        volume.go.touch()
        user.await_event("written")
        wait_until(lambda: user.status().get("in_sync") == [1], "the loss")
        last.kill()
        last.start()
        flush_file.touch()
        if user.finish() == 0:
            return False
        self.assertNotIn("wrong", user.events, volume.logs())
        outcome = user.events.get("failed") or user.events["refused"]
        self.assertEqual(outcome["error"], -errno.EIO, volume.logs())
        status = user.events["ended"]["volume"]
        self.assertIn("memory", status["failure"])
        self.assertEqual(last.end(), 0, volume.logs())
        lost = {block for part in status["lost"] for block in range(part["offset"] // BLOCK, (part["offset"] + part["length"]) // BLOCK)}
        self.assertTrue(lost)
        self.assertLess(len(lost), 16 * 256, status)  # chunks that were flushed are not among them
        self.assertLessEqual(volume.differing(last), lost)
        return True

    def test_a_replica_that_returns_is_copied_its_missing_chunks_and_reports_them(self):
        with Volume() as volume:
            user = volume.start_user("--copy-rate", 2 << 20)  # slow enough to be observed
            volume.wait_for_sync(user)
            lost = volume.replicas[2]
            lost.kill()
            wait_until(lambda: len(user.status()["in_sync"]) == 2, "the loss")
            lost.start()
            lacking = wait_until(lambda: self.status(lost).get("sync", {}).get("lacking_chunks"), "its copies")
            self.assertGreater(lacking, 0)
            user.process.send_signal(signal.SIGSTOP)  # it copies
            output = volume.run_tool("status", lost.address).stdout
            self.assertRegex(output, "not in sync: lacks|in sync")
            self.assertEqual(self.check(volume).returncode, 1)  # names it
            user.process.send_signal(signal.SIGCONT)
            volume.wait_for_sync(user)
            wait_until(lambda: self.status(lost).get("sync", {}).get("in_sync"), "its return")
            self.assertGreater(self.status(lost)["sync"]["copied_bytes"], 0)
            volume.finish(user)

    def test_a_volume_on_sender_groups_loses_a_replica_and_gets_it_back(self):
        with Volume(fabric="leaf-spine:2x2x3") as volume:
            user = volume.start_user("--multicast", "mcrdma")
            volume.wait_for_sync(user)
            self.assertEqual(user.status()["multicast"], "mcrdma")
            switches = volume.switch.status()["switches"]
            self.assertEqual([switch["groups"] for switch in switches], [[]] * len(switches))  # none of the other kind
            numbers = {group["virtual_qpn"] for switch in switches for group in switch["sender_groups"]}
            self.assertTrue(numbers and all(0xC00000 <= number <= 0xDFFFFF for number in numbers), numbers)  # not cepheus-cmd's
            lost = volume.replicas[2]
            lost.kill()
            wait_until(lambda: len(user.status()["in_sync"]) == 2, "the loss")
            lost.start()
            self.is_alike_again(volume, user)

    def test_the_example_reads_back_what_it_wrote(self):
        with Volume() as volume:
            command = [str(BUILD / "examples/volume"), "v", volume.addresses, "a line"]
            run = subprocess.run(command, env=on_host(volume.switch.socket, 0), text=True, capture_output=True, timeout=60, check=False)
            self.assertEqual((run.returncode, run.stdout), (0, "a line\n"), run.stderr + volume.logs())

    def test_an_mpi_rank_writes_a_volume_between_its_broadcasts(self):
        with Volume(topology=star(8)) as volume:
            command = [BUILD / "bin/cepheus-run", "--fabric", volume.switch.socket, "--", "-np", 4, *mca_arguments(REQUIRE),
                       PROGRAMS / "volume_rank_check", "--volume", "v", "--replicas", volume.addresses]
            run = subprocess.run([str(word) for word in command], text=True, capture_output=True, timeout=120, check=False)
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr + volume.logs())
            self.assertIn("ok: ", run.stdout)
            self.assert_alike(volume)

    def test_a_new_disk_is_copied_everything(self):
        with Volume(size="4M") as volume:
            self.write(volume)
            self.remove_disk(volume.replicas[0])
            volume.replicas[0].start()
            user = volume.start_user()
            self.is_alike_again(volume, user)

    def test_a_writer_reports_that_all_is_lost_when_all_disks_are_new(self):
        with Volume(replicas=2, size="4M") as volume:
            user = volume.start_user()
            volume.wait_for_sync(user)
            for replica in volume.replicas:
                self.remove_disk(replica)
            for replica in volume.replicas:
                replica.start()
            self.assertEqual(user.finish(), 1, user.tail() + volume.logs())
            self.assertNotIn("wrong", user.events, user.tail())
            outcome = user.events.get("failed") or user.events["refused"]
            self.assertEqual(outcome["error"], -errno.EIO)
            status = user.events["ended"]["volume"]
            self.assertEqual(status["lost"], [{"offset": 0, "length": 4 << 20}])
            self.assertIn("--create", status["failure"])

    def remove_disk(self, replica):
        replica.kill()  # if it still runs
        replica.file.unlink()
        pathlib.Path(f"{replica.file}.cepheus").unlink()

    def goes_on_without(self, volume, user, lost):
        """`lost` ends by itself; writes continue."""
        wait_until(lambda: lost.process.poll() is not None, "its end", 30)
        self.assertEqual(lost.process.returncode, 1, volume.logs())
        wait_until(lambda: len(user.status().get("in_sync", [])) == 2, "the loss")
        before = user.events["running"]["writes"]
        wait_until(lambda: user.events["running"]["writes"] > before, "writes")

    def is_alike_again(self, volume, user):
        volume.wait_for_sync(user)
        volume.finish(user)
        self.assert_alike(volume)

    def test_a_replica_without_space_for_its_record_reports_it_and_returns_when_there_is(self):
        with Volume() as volume:
            user = volume.start_user("--idle-until", volume.go)
            user.await_event("idle")
            lost = volume.replicas[2]
            resource.prlimit(lost.process.pid, resource.RLIMIT_FSIZE, (RECORD_SLOT, RECORD_SLOT))
            volume.go.touch()
            self.goes_on_without(volume, user, lost)
            self.assertIn("File too large", lost.log.read_text())
            lost.start()  # without the limit
            self.is_alike_again(volume, user)

    def test_a_replica_with_a_disk_that_loses_a_page_reports_it_and_returns_with_another(self):
        with Volume() as volume:
            user = volume.start_user("--idle-until", volume.go)
            user.await_event("idle")
            lost = volume.replicas[1]
            os.truncate(lost.file, 0)  # its NIC's writes have no memory any more
            volume.go.touch()
            self.goes_on_without(volume, user, lost)
            self.assertIn("disk under", lost.log.read_text())
            self.remove_disk(lost)
            lost.start()
            self.is_alike_again(volume, user)

    def test_check_names_blocks_that_differ_and_is_not_misled_by_a_writer(self):
        with Volume(size="4M") as volume:
            user = volume.start_user()
            volume.wait_for_sync(user)
            checked = self.check(volume)
            self.assertNotEqual(checked.returncode, 1, checked.stdout + checked.stderr)
            volume.finish(user)
            spoilt = volume.replicas[1]
            self.assertEqual(spoilt.end(), 0)
            with open(spoilt.file, "r+b") as file:
                file.seek(700 * 4096 + 5)
                file.write(b"something else")
            spoilt.start()
            checked = self.check(volume)
            self.assertEqual(checked.returncode, 1, checked.stdout + checked.stderr)
            self.assertIn("block 700 differs", checked.stdout)
            self.assertIn("1 of 1024 blocks differ", checked.stdout)
            volume.replicas[0].kill()
            self.assertEqual(self.check(volume).returncode, 2)

    def assert_sleep(self, pids):
        """A hundred looks in succession find a thread asleep. One that spins runs, or wants to, at some of them, and the wait fails."""
        def sleeps(thread):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it may have ended
                return all((thread / "stat").read_text().rpartition(") ")[2][0] == "S" for _ in range(100))
            return True

        for pid in pids:
            for thread in pathlib.Path(f"/proc/{pid}/task").iterdir():
                wait_until(lambda at=thread: sleeps(at), f"{thread} asleep")

    def test_a_second_user_takes_the_volume_from_the_first(self):
        with Volume(size="4M") as volume:
            first = volume.start_user("--linger-until", volume.go)
            first.await_event("running")
            second = volume.start_user(host=4)
            second.await_event("verified")
            first.await_event("lingers")
            self.assert_sleep([first.process.pid])  # it has no work any more
            volume.go.touch()
            self.assertEqual(first.finish(), 1)
            self.assertEqual((first.events.get("failed") or first.events["refused"])["error"], -116)  # ESTALE
            volume.finish(second)

    def test_sleeps_without_work(self):
        with Volume(size="4M") as volume:
            user = volume.start_user("--idle-until", volume.go)
            user.await_event("idle")
            self.assert_sleep([user.process.pid, *(r.process.pid for r in volume.replicas)])
            volume.go.touch()
            volume.finish(user)

    def test_a_refused_writer_gets_the_reason(self):
        with Volume(size="4M") as volume:
            self.write(volume)
            opened = lambda *options: volume.start_user(*options).await_event("not opened")  # noqa: E731
            other = opened("--volume", "other")
            self.assertEqual(other["error"], -13)
            self.assertIn("serves volume 'v', not 'other'", other["text"])
            places = ",".join(reversed([r.address for r in volume.replicas]))
            order = opened("--replicas", places)
            self.assertEqual(order["error"], -13)
            self.assertIn("order", order["text"])
            volume.replicas[1].kill()
            missing = opened("--time-limit-ms", 3000)
            self.assertEqual(missing["error"], -110)
            self.assertIn(volume.replicas[1].address, missing["text"])

    def test_status_shows_texts_of_any_bytes(self):
        """A volume's name, in a replica's status; and this replica's refusal, in the status of a writer that has another name."""
        with Volume(size="4M") as volume:
            user = volume.start_user()
            volume.wait_for_sync(user)
            other = volume.replicas[2]
            other.kill()
            other.command[other.command.index("--volume") + 1] = os.fsdecode(b"\xff\x1b")
            other.command[other.command.index("--file") + 1] = volume.directory / "other"
            other.start()
            self.assertEqual(self.status(other)["volume"], "\ufffd\x1b")
            wait_until(lambda: "serves volume '\ufffd\\x1b'" in user.status()["replicas"][2].get("why", ""), lambda: f"the refusal:\n{user.tail()}")
            volume.finish(user)

    def test_a_status_of_another_version_is_reported(self):
        challenge, welcome, status = 1, 3, 8
        geometry = struct.pack(">QII", 4 << 20, 4096, 1 << 20)
        good = {"volume": "v", "size": 4 << 20, "block": 4096, "chunk": 1 << 20, "place": 0, "count": 1,
                "config": {"epoch": 1, "writer": 1, "version": 1, "members": [0]}}
        changes = {"volume": 5}, {"config": {}}, {"count": "one"}, {"chunk": 0}, {"config": {**good["config"], "members": 7}}
        for text in "{}", "[]", *(json.dumps(good | change) for change in changes):
            with self.subTest(text), socket.create_server(("127.0.0.1", 0)) as listener:
                def serve(listener=listener, text=text.encode()):
                    peer, _ = listener.accept()
                    with peer:
                        for answer in (frame(challenge, b"ceph-vol" + struct.pack(">H", VERSION) + bytes(NONCE)), frame(welcome, geometry + bytes(TAG)),
                                       frame(status, struct.pack(">H", len(text)) + text)):
                            peer.sendall(answer)
                            peer.recv(1 << 16)  # a whole request, or the end
                replica = threading.Thread(target=serve)
                replica.start()
                address = f"127.0.0.1:{listener.getsockname()[1]}"
                checked = subprocess.run([REPLICA, "check", "--volume", "v", "--replicas", address], text=True, capture_output=True, timeout=60, check=False)
                replica.join()
                self.assertEqual(checked.returncode, 2, checked.stdout + checked.stderr)
                self.assertIn(f"{address}: ", checked.stderr)

    def test_check_needs_each_replica_of_the_volume_once(self):
        with Volume(size="4M") as volume:
            addresses = [replica.address for replica in volume.replicas]
            check = lambda *named: volume.run_tool("check", "--volume", "v", "--replicas", ",".join(named))  # noqa: E731
            self.assertEqual(check(*addresses[:2]).returncode, 0)  # no writer has numbered them yet
            self.assertEqual(check(addresses[0], addresses[0]).returncode, 2)
            self.write(volume)
            self.assertEqual(check(*reversed(addresses)).returncode, 0)
            incomplete = check(addresses[0], addresses[2])
            self.assertEqual(incomplete.returncode, 2, incomplete.stdout)
            self.assertIn("2 of 3", incomplete.stderr)
            twice = check(*addresses, addresses[1])
            self.assertEqual(twice.returncode, 2, twice.stdout)
            self.assertIn(f"{addresses[1]} ", twice.stderr)

    def test_a_size_whose_marks_no_writer_could_read_is_refused(self):
        with tempfile.TemporaryDirectory(prefix="cepheus-volume-") as scratch:
            done = subprocess.run([REPLICA, "serve", "--volume", "v", "--file", f"{scratch}/data", "--size", str((8 << 40) + 4096), "--create",
                                   "--listen", "127.0.0.1:0"], text=True, capture_output=True, timeout=60, check=False)
            self.assertEqual(os.listdir(scratch), [])
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn("too large", done.stderr)

    def test_a_wrong_key_is_refused(self):
        with Volume(size="4M") as volume:
            keys = []
            for name, digit in ("right", "1"), ("wrong", "2"):
                keys.append(volume.directory / name)
                keys[-1].write_text(digit * 64)
            replica = volume.replicas[0]
            replica.kill()
            # The fabric itself has no key; the replica requires one.
            replica.env["CEPHEUS_KEY_FILE"] = str(keys[0])
            replica.start()
            for key, code in (keys[0], 0), (keys[1], 1), (None, 1):
                env = {k: v for k, v in os.environ.items() if k != "CEPHEUS_KEY_FILE"}
                if key is not None:
                    env["CEPHEUS_KEY_FILE"] = str(key)
                result = volume.run_tool("status", replica.address, env=env)
                self.assertEqual(result.returncode, code, result.stdout + result.stderr)
                self.assertIn("key differs" if code else "volume v", result.stdout + result.stderr)

    def test_requests_without_reading_the_answers_take_no_memory(self):
        """Small requests for digests of half a megabyte, or for status. Answers wait for space, one at a time, and other peers are served."""
        def peak_kib(pid):
            lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
            return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))

        hello = b"ceph-vol" + struct.pack(">HBHBB", VERSION, OBSERVER, 0, 0, 0) + bytes(NONCE + TAG)
        size, unit = 16 << 20, 512
        digests = frame(DIGEST_REQUEST, struct.pack(">QQI", 0, size, unit))
        with Volume(replicas=1, size="16M", options=("--block", "512")) as volume, socket.socket() as observer:
            replica = volume.replicas[0]
            host, port = replica.address.split(":")
            observer.connect((host, int(port)))
            observer.sendall(frame(HELLO, hello) + digests)
            length = 0
            while length < size // unit * DIGEST:  # the first answer has arrived
                part = observer.recv(1 << 16)
                self.assertTrue(part, volume.logs())
                length += len(part)
            before = peak_kib(replica.process.pid)
            observer.sendall(digests * 1000)
            self.status(replica)
            self.assertLess(peak_kib(replica.process.pid), before + (4 << 10))
            with socket.create_connection((host, int(port))) as other:
                other.sendall(frame(HELLO, hello) + frame(STATUS_REQUEST, b"") * 200_000)
                self.status(replica)
                self.assertLess(peak_kib(replica.process.pid), before + (8 << 10))

    def test_blocks_that_nbdkit_can_not_serve_are_refused(self):
        with tempfile.TemporaryDirectory(prefix="cepheus-volume-") as scratch:
            done = subprocess.run([REPLICA, "serve", "--volume", "v", "--file", f"{scratch}/data", "--size", "4M", "--create", "--listen", "127.0.0.1:0",
                                   "--block", "131072"], text=True, capture_output=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn("--block 131072", done.stderr)

    def test_two_servers_of_one_file_are_refused(self):
        with Volume(replicas=1, size="4M") as volume:
            replica = volume.replicas[0]
            command = [str(word) for word in replica.command]
            command[command.index("--listen") + 1] = "127.0.0.1:0"
            second = subprocess.run(command, env=on_host(volume.switch.socket, 0), text=True, capture_output=True, timeout=60, check=False)
            self.assertEqual(second.returncode, 1, second.stdout + second.stderr)
            self.assertIn("in use", second.stdout + second.stderr)


if __name__ == "__main__":
    unittest.main()
