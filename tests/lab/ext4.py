#!/usr/bin/python3
"""In the lab: ext4 on a replicated volume over the kernel's nbd, under many small files, while a replica dies and comes back.

Its files are written, renamed and removed as in a source tree; then all are compared with what was written, after the file system
was mounted anew, fsck has looked, and the replicas have been compared.
"""

import argparse
import hashlib
import os
import pathlib
import random
import subprocess
import sys
import time

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(PROJECT / "tools"))
from switch_process import Switch  # noqa: E402
from volume_process import Volume  # noqa: E402

BUILD = pathlib.Path(os.environ["CEPHEUS_BUILD"])
MIB = 1 << 20
DEVICE = "/dev/nbd0"
VICTIM = 1
TIME_LIMIT = 300


def run(*command):
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


class Tree:
    """Files as in a kernel's sources: most are small, directories a few levels deep. Remembers what each one must hold."""

    def __init__(self, root, seed):
        self.root, self.random = pathlib.Path(root), random.Random(seed)
        self.files = {}  # path below the root: digest
        self.made = 0

    def add(self, count):
        for _ in range(count):
            self.made += 1
            depth = self.random.randint(1, 4)
            directory = pathlib.Path(*(f"d{self.random.randint(0, 7)}" for _ in range(depth)))
            path = directory / f"f{self.made}"
            size = int(2 ** self.random.uniform(4, 16))
            data = self.random.randbytes(size)
            (self.root / directory).mkdir(parents=True, exist_ok=True)
            with open(self.root / path, "wb") as file:
                file.write(data)
                if self.made % 50 == 0:  # as an editor or a version control does
                    file.flush()
                    os.fsync(file.fileno())
            self.files[path] = hashlib.sha256(data).digest()
            self._disturb()

    def _disturb(self):
        chance = self.random.random()
        if chance < 0.05:
            path = self.random.choice(list(self.files))
            (self.root / path).unlink()
            del self.files[path]
        elif chance < 0.1:
            path = self.random.choice(list(self.files))
            new = path.with_name(path.name + "r")
            (self.root / path).rename(self.root / new)
            self.files[new] = self.files.pop(path)

    def differences(self):
        """Files that are not as they were written, that are missing, or that nobody wrote."""
        there = {path.relative_to(self.root) for path in self.root.rglob("f*") if path.is_file()}
        wrong = [path for path in there & set(self.files)
                 if hashlib.sha256((self.root / path).read_bytes()).digest() != self.files[path]]
        return sorted(map(str, wrong + list(there ^ set(self.files))))


def say(text):
    print(f"{time.monotonic():8.1f}  {text}", flush=True)


def check(volume, files, seed):
    mounted = pathlib.Path("/run/volume")
    mounted.mkdir(exist_ok=True)
    run("nbd-client", "-unix", volume.socket, DEVICE, "-b", 4096, "-timeout", TIME_LIMIT)
    try:
        run("mkfs.ext4", "-q", "-b", 4096, DEVICE)
        run("mount", DEVICE, mounted)
        say(f"ext4 on {DEVICE}")
        tree = Tree(mounted, seed)
        tree.add(files // 3)
        volume.replicas[VICTIM].kill()
        say(f"{tree.made} files made; a replica is killed")
        tree.add(files // 3)
        os.sync()
        volume.wait_for_sync(2)
        volume.replicas[VICTIM].start()
        say(f"{tree.made} files made; it is started again")
        tree.add(files - 2 * (files // 3))
        run("umount", mounted)
        volume.wait_for_sync(3)
        say(f"{tree.made} files made; unmounted, and all replicas are in sync")
        run("mount", "-o", "ro", DEVICE, mounted)
        differences = tree.differences()
        run("umount", mounted)
        if differences:
            raise RuntimeError(f"{len(differences)} files differ from what was written: {differences[:5]}")
        say(f"{len(tree.files)} files are as they were written")
        print(run("fsck.ext4", "-f", "-n", DEVICE), end="", flush=True)
    finally:
        subprocess.run(["umount", "-l", mounted], stderr=subprocess.DEVNULL)
        run("nbd-client", "-d", DEVICE)


def main():
    parser = argparse.ArgumentParser(prog="./run lab ext4", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=6000, help="to make (default 6000)")
    parser.add_argument("--seed", type=int, default=1, help="of names, sizes and what is in them (default 1)")
    options = parser.parse_args()
    try:
        with Switch(BUILD, "--hosts", "4") as switch, Volume(BUILD, switch, size=128 * MIB) as volume:
            check(volume, options.files, options.seed)
            volume.stop_nbd()
            done = volume.check()
            print(done.stdout + done.stderr, end="")
            return done.returncode
    except RuntimeError as error:
        print(f"lab ext4: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
