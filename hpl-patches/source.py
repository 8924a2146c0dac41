"""HPL's source: fetched from Debian's source package of HPCC, which includes HPL 2.0, patched, and built with the serial OpenBLAS."""

import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = "hpcc"
TARBALL = "hpcc_1.5.0.orig.tar.gz"
SHA256 = "0a6fef7ab9f3347e549fed65ebb98234feea9ee18aea0c8f59baefbe3cf7ffb8"
IN_TARBALL = "hpcc-1.5.0/hpl"
# The series fits any HPL; the other patch turns HPCC's copy into a program again.
PATCHES = sorted((HERE / "series").glob("*.patch")) + sorted((HERE / "hpcc").glob("*.patch"))
FETCH_SECONDS = 180


class Unavailable(Exception):
    """HPL's source is not available; the text names the remedy."""


def log(text):
    print(f"hpl: {text}", file=sys.stderr, flush=True)


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def source_entries(text, is_list):
    """The entries of a file of /etc/apt/sources.list.d, for source packages instead of binary packages."""
    if is_list:
        return re.sub(r"(?m)^\s*deb(-src)?(?=\s)", "deb-src", text)
    return re.sub(r"(?mi)^Types:.*$", "Types: deb-src", text)


def debian_entries():
    """The files with this machine's entries for Debian's archive."""
    done = subprocess.run(["apt-get", "indextargets", "--format", "$(SOURCESENTRY)", "Created-By: Packages", "Origin: Debian"],
                          capture_output=True, text=True, check=False)
    return sorted({line.rpartition(":")[0] for line in done.stdout.split() if ":" in line})


def fetch(directory):
    """Leaves the tarball in `directory`. Uses apt's keys and sources, and neither changes nor locks its files."""
    tarball = directory / TARBALL
    if tarball.exists() and digest(tarball) == SHA256:
        return tarball
    by_hand = f"put {TARBALL} of Debian's source package {PACKAGE} into {directory}"
    if shutil.which("apt-get") is None:
        raise Unavailable(f"apt-get is missing; {by_hand}")
    entries = debian_entries()
    if not entries:
        raise Unavailable(f"apt knows of no Debian archive (apt-get indextargets); run apt-get update, or {by_hand}")
    log(f"fetching the source package {PACKAGE}")
    apt = directory / "apt"
    for name in ("sources", "lists/partial", "cache/archives/partial"):
        (apt / name).mkdir(parents=True, exist_ok=True)
    for entry in map(pathlib.Path, entries):
        is_list = entry.suffix == ".list"
        (apt / "sources" / entry.name).write_text(source_entries(entry.read_text(), is_list))
    options = ["-o", f"Dir::Etc::sourceparts={apt}/sources", "-o", "Dir::Etc::sourcelist=/dev/null", "-o", f"Dir::State::lists={apt}/lists",
               "-o", f"Dir::Cache={apt}/cache", "-o", "APT::Sandbox::User=" + ("root" if os.geteuid() == 0 else "")]
    output = ""
    for command in (["update"], ["source", "--download-only", "--tar-only", PACKAGE]):
        try:
            done = subprocess.run(["apt-get", "-q", *options, *command], cwd=directory, capture_output=True, text=True,
                                  timeout=FETCH_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise Unavailable(f"apt-get {command[0]} took more than {FETCH_SECONDS} s; {by_hand}") from None
        output += done.stdout + done.stderr
    shutil.rmtree(apt)
    if not tarball.exists():
        raise Unavailable(f"apt-get source {PACKAGE} fetched no {TARBALL}; {by_hand}; its output:\n{output.strip()}")
    if digest(tarball) != SHA256:
        tarball.rename(tarball.with_suffix(".bad"))
        raise Unavailable(f"{TARBALL} has the SHA-256 {digest(tarball.with_suffix('.bad'))}, not {SHA256}; {by_hand}")
    return tarball


def unpack(tarball, source):
    """Makes `source` HPL's tree with all patches applied."""
    shutil.rmtree(source, ignore_errors=True)
    fresh = source.with_name("unpacking")
    shutil.rmtree(fresh, ignore_errors=True)
    with tarfile.open(tarball) as archive:
        members = [member for member in archive if member.name.startswith(IN_TARBALL + "/")]
        archive.extractall(fresh, members)
    tree = fresh / IN_TARBALL
    for patch in PATCHES:
        done = subprocess.run(["patch", "-p1", "--fuzz=0", "--no-backup-if-mismatch", "-i", patch], cwd=tree, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"hpl: {patch} does not apply:\n{done.stdout}{done.stderr}")
    tree.rename(source)
    shutil.rmtree(fresh)


def build(directory):
    """(xhpl, xhpl-isolated), built in `directory` if missing or older than the patches."""
    directory.mkdir(parents=True, exist_ok=True)
    tarball = fetch(directory)
    source, stamp = directory / "source", directory / "applied"
    wanted = "".join(f"{digest(path)} {path.name}\n" for path in [tarball, *PATCHES])
    if not source.exists() or not stamp.exists() or stamp.read_text() != wanted:
        log("applying the patches")
        unpack(tarball, source)
        stamp.write_text(wanted)
    launcher = ["-DCMAKE_C_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    for command in (["cmake", "-S", HERE, "-B", directory / "build", "-G", "Ninja", f"-DHPL_SOURCE={source}", *launcher],
                    ["cmake", "--build", directory / "build"]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"hpl: building HPL failed:\n{done.stdout}{done.stderr}")
    return directory / "build/xhpl", directory / "build/xhpl-isolated"
