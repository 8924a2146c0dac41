"""The box's own side: whether this machine can serve a topology's hosts by its interfaces. Changes nothing."""

import json
import subprocess

SWITCH = None  # cepheus-switch's path
SECONDS = 60
# Each check's name (ports/interface_check.h), and its cause where that has another name.
CAUSES = {"roce": "roce-on", "mtu": "mtu-box", "interface": "no-interface", "cores": "few-cores"}


def finding(name, good, seen, cause="", todo="", **data):
    return {"name": name, "ok": good, "seen": seen, "cause": "" if good else cause, "todo": "" if good else todo, "data": data}


def examine(topology, show):
    """The findings of `cepheus-switch --check`, a step for each."""
    run = None
    try:
        run = subprocess.run([SWITCH, "--check", "--topology", topology], text=True, capture_output=True, stdin=subprocess.DEVNULL,
                             timeout=SECONDS, check=False)
        checks = json.loads(run.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired) as why:
        text = (run is not None and run.stderr.strip()) or str(why)
        findings = [finding("box", False, f"cepheus-switch can't check this machine: {text}", "no-switch",
                            f"cepheus-switch --check --topology {topology}; is the file there, and readable?")]
    else:
        findings = [finding(one["name"], one["verdict"] == "good", (f"{one['interface']}: " if one["interface"] else "") + one["seen"],
                            CAUSES.get(one["name"], one["name"]), one["todo"], verdict=one["verdict"]) for one in checks]
    for one in findings:
        show(one)
    return findings
