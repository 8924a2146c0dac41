#!/usr/bin/python3
"""Readers without manners, for the page of a fabric: requests at a rate, and connections that say nothing.

usage: web_load.py ADDRESS:PORT --rate REQUESTS_A_SECOND --idle CONNECTIONS [--seconds S]
Ends after S seconds or when standard input ends, and prints one JSON object: answers by status, and how many came to nothing.
"""

import argparse
import collections
import contextlib
import http.client
import json
import select
import socket
import sys
import threading
import time

CLIENTS = 16
PATIENCE = 5
PATHS = ["/page.css", "/page.js", "/", "/nothing-here"]  # /view.json waits for the fabric's next view, up to half a second


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
                connection = connection or http.client.HTTPConnection(*self.place, timeout=PATIENCE)
                connection.request("GET", PATHS[n % len(PATHS)])
                answer = connection.getresponse()
                answer.read()
                self._count(answer.status)
                if answer.will_close:
                    connection.close()
            except (OSError, http.client.HTTPException):
                self._count("none")
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
