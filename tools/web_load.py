#!/usr/bin/python3
"""Readers without manners, for the page of a fabric: requests at a rate, and connections that say nothing.

usage: web_load.py ADDRESS:PORT --rate REQUESTS_A_SECOND --idle CONNECTIONS [--seconds S]
Ends after S seconds or when standard input ends, and prints one JSON object: answers by status, and how many came to nothing.
"""

import argparse
import collections
import contextlib
import json
import re
import select
import socket
import sys
import threading
import time

CLIENTS = 16
PATIENCE = 5
PATHS = ["/page.css", "/page.js", "/", "/nothing-here"]  # /view.json waits for the fabric's next view, up to half a second


class Connection:
    """One that stays open for many requests. Answers are taken apart no further than counting them needs: time is the fabric's here."""

    LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)

    def __init__(self, place):
        self.requests = [f"GET {path} HTTP/1.1\r\nHost: {place[0]}:{place[1]}\r\n\r\n".encode() for path in PATHS]
        self.socket = socket.create_connection(place, PATIENCE)

    def close(self):
        self.socket.close()

    def ask(self, n):
        """The status of the answer, and whether the connection is open to another request."""
        self.socket.sendall(self.requests[n % len(PATHS)])
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += self._more()
        head, _, body = answer.partition(b"\r\n\r\n")
        missing = int(self.LENGTH.search(head)[1]) - len(body)
        while missing > 0:
            missing -= len(self._more())
        return int(head.split(None, 2)[1]), b"\r\nconnection: close" not in head.lower()

    def _more(self):
        some = self.socket.recv(1 << 16)
        if not some:
            raise ConnectionError("ended in the middle of an answer")
        return some


class Load:
    def __init__(self, address, rate, idle):
        host, _, port = address.rpartition(":")
        self.place = host, int(port)
        self.rate, self.idle = rate, idle
        self.ended = threading.Event()
        self.lock = threading.Lock()
        self.answers = collections.Counter()
        self.opened = 0  # idle connections, with those that the server closed
        self.threads = [threading.Thread(target=self._ask, args=(i,)) for i in range(CLIENTS if rate else 0)]
        self.threads.append(threading.Thread(target=self._idle))

    def start(self):
        for thread in self.threads:
            thread.start()

    def end(self):
        self.ended.set()
        for thread in self.threads:
            thread.join()
        return {"answers": dict(self.answers), "idle_opened": self.opened}

    def _count(self, what):
        with self.lock:
            self.answers[str(what)] += 1

    def _ask(self, first):
        """Every CLIENTS-th request: one that is late is followed by the next at once, so that the rate is kept if it can be."""
        connection, due, n = None, time.monotonic(), first
        while not self.ended.is_set():
            due = max(due + CLIENTS / self.rate, time.monotonic() - 1)
            self.ended.wait(max(0, due - time.monotonic()))
            try:
                connection = connection or Connection(self.place)
                status, is_open = connection.ask(n)
                self._count(status)
            except OSError:
                self._count("none")
                is_open = False
            if connection and not is_open:
                connection.close()
                connection = None
            n += 1
        if connection:
            connection.close()

    def _idle(self):
        sockets = []
        with contextlib.ExitStack() as stack:
            stack.callback(lambda: [each.close() for each in sockets])
            while not self.ended.is_set():
                while len(sockets) < self.idle and not self.ended.is_set():
                    try:
                        sockets.append(socket.create_connection(self.place, 0.2))
                        self.opened += 1
                    except OSError:
                        break
                gone = select.select(sockets, [], [], 0)[0] if sockets else []
                for each in gone:
                    each.close()
                    sockets.remove(each)
                self.ended.wait(0.05)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address")
    parser.add_argument("--rate", type=float, default=1000)
    parser.add_argument("--idle", type=int, default=200)
    parser.add_argument("--seconds", type=float)
    options = parser.parse_args()
    load = Load(options.address, options.rate, options.idle)
    began = time.monotonic()
    load.start()
    print("started", flush=True)
    select.select([sys.stdin], [], [], options.seconds)
    told = load.end()
    print(json.dumps(told | {"seconds": time.monotonic() - began}))


if __name__ == "__main__":
    main()
