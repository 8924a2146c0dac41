"""Checks a recording against Chrome's Trace Event Format: Debian has no trace_processor to load it with."""

import json
import pathlib

NUMBER = (int, float)
# Phase -> its events' additional keys, and their types.
PHASES = {
    "M": {"args": dict},
    "X": {"tid": int, "ts": NUMBER, "dur": NUMBER, "args": dict},
    "i": {"tid": int, "ts": NUMBER, "s": str},
    "b": {"tid": int, "ts": NUMBER, "id": int, "cat": str},
    "e": {"tid": int, "ts": NUMBER, "id": int, "cat": str},
    "s": {"tid": int, "ts": NUMBER, "id": int, "cat": str},
    "f": {"tid": int, "ts": NUMBER, "id": int, "cat": str, "bp": str},
}
METADATA = {"process_name", "process_sort_index", "thread_name"}


class Trace:
    def __init__(self, path):
        document = json.loads(pathlib.Path(path).read_text())
        self.events, self.notes = document["traceEvents"], document["otherData"]
        assert document["displayTimeUnit"] == "ns"

    def of(self, *phases):
        return [event for event in self.events if event["ph"] in phases]

    def named(self, name, *phases):
        return [event for event in self.of(*phases) if event["name"] == name]

    def names(self, what):
        """(process, thread or None) -> its name."""
        return {(event["pid"], event.get("tid")): event["args"]["name"] for event in self.named(what, "M")}

    def flaws(self):
        """Errors against the format."""
        return [*self._of_form(), *self._of_pairs(), *self._of_slices(), *self._of_arrows(), *self._of_names()]

    def _of_form(self):
        for event in self.events:
            phase = event.get("ph")
            if phase not in PHASES or not isinstance(event.get("name"), str) or not isinstance(event.get("pid"), int):
                yield f"no event of the format: {event}"
                continue
            for key, kind in PHASES[phase].items():
                if not isinstance(event.get(key), kind):
                    yield f"{key} of {event}"
            if phase == "M" and event["name"] not in METADATA:
                yield f"metadata of no known name: {event}"
            if event.get("dur", 0) < 0:
                yield f"ends before it begins: {event}"

    def _of_pairs(self):
        for first, last in (("b", "e"), ("s", "f")):
            begins = {event["id"]: event for event in self.of(first)}
            ends = {event["id"]: event for event in self.of(last)}
            if len(begins) != len(self.of(first)) or len(ends) != len(self.of(last)):
                yield f"an identifier of {first} or {last} comes twice"
            for number in begins.keys() ^ ends.keys():
                yield f"one end only: {begins.get(number, ends.get(number))}"
            for number in begins.keys() & ends.keys():
                if ends[number]["ts"] < begins[number]["ts"]:
                    yield f"ends before it begins: {begins[number]}"

    def _of_slices(self):
        until = {}
        for event in sorted(self.of("X"), key=lambda event: event["ts"]):
            track = (event["pid"], event["tid"])
            if event["ts"] < until.get(track, event["ts"]) - 1e-3:
                yield f"overlaps the one before on its track: {event}"
            until[track] = event["ts"] + event["dur"]

    def _of_arrows(self):
        places = {(event["pid"], event["tid"], event["ts"]) for event in self.of("X")}
        for event in self.of("s", "f"):
            if (event["pid"], event["tid"], event["ts"]) not in places:
                yield f"an arrow's end without a slice: {event}"

    def _of_names(self):
        processes = {pid for pid, _ in self.names("process_name")}
        for pid in {event["pid"] for event in self.of("X", "b", "i")} - processes:
            yield f"process {pid} has no name"
        threads = self.names("thread_name")
        for track in {(event["pid"], event["tid"]) for event in self.of("X")} - threads.keys():
            yield f"track {track} has no name"
