"""Starts, queries and ends a cepheus-switch, for tests, benchmarks and tools.

cepheus-run does the same for itself: it is installed as one file.
"""

import json
import os
import pathlib
import select
import socket
import subprocess
import tempfile

READY_SECONDS = 60
ENDING_SECONDS = 60


def star(hosts, link="", switch="", fabric=""):
    """A topology file: hosts h0.. at 10.0.0.1.. on one switch s0, all links alike; the others are TOML of those tables."""
    text = f"[fabric]\n{fabric}\n[link]\n{link}\n[[switch]]\nname = \"s0\"\n{switch}\n"
    for i in range(hosts):
        text += f"[[host]]\nname = \"h{i}\"\naddress = \"10.0.0.{i + 1}\"\n"
    return text


def end(process, seconds=ENDING_SECONDS):
    """By SIGTERM, or by SIGKILL after a while."""
    process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Switch:
    """cepheus-switch of a build tree, with `arguments` or on a topology file with this text; serves once it is made.

    Its socket is in a fresh directory, unless a path is given. `before` is a command that runs it, `program` another one than
    the tree's, `preexec` is called in its process before it starts. A context manager: close() runs after the block.
    """

    def __init__(self, build, *arguments, topology=None, path=None, before=(), program=None, env=None, preexec=None):
        self._own = tempfile.TemporaryDirectory(prefix="cepheus-switch-") if path is None else None
        path = pathlib.Path(path or pathlib.Path(self._own.name) / "fabric")
        self.socket, self.directory = str(path), path.parent
        self.env, self.preexec = env, preexec
        self.process = None
        words = list(arguments)
        if topology is not None:
            file = pathlib.Path(self.socket + ".toml")
            file.write_text(topology, encoding="utf-8")
            words += ["--topology", file]
        self.command = [*map(str, (*before, program or pathlib.Path(build) / "bin/cepheus-switch", *words)), "--fabric", self.socket]
        try:
            self.start()
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def start(self):
        """Starts it, be it again; RuntimeError if it does not serve within READY_SECONDS."""
        ready, ready_end = os.pipe()
        try:
            self.process = subprocess.Popen([*self.command, "--ready-fd", str(ready_end)], stdin=subprocess.DEVNULL, pass_fds=(ready_end,),
                                            env=self.env, preexec_fn=self.preexec)
            os.close(ready_end)
            if not select.select([ready], [], [], READY_SECONDS)[0] or not os.read(ready, 64).startswith(b"ready"):
                raise RuntimeError("cepheus-switch did not start: " + " ".join(self.command))
        finally:
            os.close(ready)

    def kill(self):
        """Without a word to its clients; start() serves at the same socket again."""
        self.process.kill()
        self.process.wait()

    def close(self):
        if self.process is not None:
            end(self.process)
        if self._own is not None:
            self._own.cleanup()

    @property
    def pid(self):
        return self.process.pid

    def send_request(self, kind, **settings):
        """The answer on the control socket; RuntimeError if the fabric refuses."""
        request = {"ask": kind, **settings}
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
            s.settimeout(READY_SECONDS)
            s.connect(self.socket + ".ctl")
            s.sendall(json.dumps(request).encode() + b"\n")
            with s.makefile("rb") as answers:
                answer = json.loads(answers.readline())
        if not answer.get("ok"):
            raise RuntimeError(f"the fabric refused {request}: {answer}")
        return answer

    def status(self):
        return self.send_request("status")["status"]

    def ports(self):
        """Of all switches."""
        return [port for switch in self.status()["switches"] for port in switch["ports"]]

    def set_links(self, links, **change):
        """Changes hosts' links and trunks, by name: loss=0.2, up=False, direction="down"."""
        for link in links:
            self.send_request("link", link=link, **change)

    def lost(self):
        """Frames that links have lost by chance."""
        return sum(port["out"]["dropped_loss"] + port["in"]["dropped_loss"] for port in self.ports())
