"""cepheusctl web over a fabric, and a client's requests to it."""

import json
import pathlib
import subprocess
import time
import urllib.error
import urllib.request

from harness import BUILD
from live import TIME_LIMIT


class Web:
    """A context manager; `url` ends with a slash, `token` is empty if none is needed."""

    def __init__(self, fabric, *arguments):
        command = [BUILD / "bin/cepheusctl", "--fabric", fabric, "web", "--listen", "127.0.0.1:0", *arguments]
        self.process = subprocess.Popen(list(map(str, command)), text=True, stdout=subprocess.PIPE)
        self.address = self.process.stdout.readline().split()[-1]
        self.url, _, self.token = self.address.partition("#")
        self.netloc = self.url.split("/")[2]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.process.terminate()
        code = self.process.wait(TIME_LIMIT)
        self.process.stdout.close()
        return code

    def switches(self):
        """How often its threads have slept so far."""
        threads = pathlib.Path(f"/proc/{self.process.pid}/task").glob("*/status")
        return sum(int(line.split()[1]) for status in threads for line in status.read_text().splitlines() if line.startswith("voluntary"))

    def open(self, path, body=None, headers=None, token=None):
        """The answer: (status, headers, file). `body`: POSTed as JSON."""
        token = self.token if token is None else token
        request = urllib.request.Request(f"{self.url}{path}?token={token}", headers=headers or {},
                                         data=None if body is None else json.dumps(body).encode())
        if body is not None and "Content-Type" not in (headers or {}):
            request.add_header("Content-Type", "application/json")
        try:
            answer = urllib.request.urlopen(request, timeout=TIME_LIMIT)
        except urllib.error.HTTPError as refusal:
            answer = refusal
        return answer.status, answer.headers, answer

    def request(self, path, body=None, headers=None, token=None):
        """(status, text)"""
        status, _, answer = self.open(path, body, headers, token)
        with answer:
            return status, answer.read().decode()

    def view(self):
        status, text = self.request("view.json")
        assert status == 200, text
        return json.loads(text)

    def answered_view(self):
        """The next view with the fabric's answer: a busy machine may delay one too long."""
        give_up = time.monotonic() + TIME_LIMIT
        while "error" in (view := self.view()):
            assert time.monotonic() < give_up, view
        return view

    def cable(self, link):
        return next(cable for cable in self.answered_view()["cables"] if cable["link"] == link)
