class Layout:
    """Where the programs and libraries are: a build tree ($CEPHEUS_BUILD or the script's own), or a prefix."""

    def __init__(self, environ):
        build = environ.get("CEPHEUS_BUILD") or BUILD_TREE
        if build and not build.startswith("@"):
            root = pathlib.Path(build).resolve()
            libraries = root / "lib"
        else:
            root = pathlib.Path(__file__).resolve().parent.parent
            libraries = root / LIBRARY_DIR / "cepheus"
        self.switch = root / "bin/cepheus-switch"
        self.ctl = root / "bin/cepheusctl"
        self.preload = libraries / "libcepheus-roce.so"
        self.transport = libraries / "ucx/libuct_rc_mcast.so"
        self.components = libraries / "openmpi"
        self.mpich = libraries / "mpich/libcepheus-mpi.so"
        self.fabric_test_pair = libraries / "fabric-test-pair"
        self.fabric_test = root / "share/cepheus/fabric-test/command.py"
        self.openmpi = libraries / "openmpi/libcepheus-mpi.so"


def open_standard_descriptors():
    """No pipe or socket gets the number of a closed one: helpers would take it for their output."""
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest free number is this one
    sys.stdout, sys.stderr = sys.stdout or open(1, "w", closefd=False), sys.stderr or open(2, "w", closefd=False)
