# SPDX-License-Identifier: BSD-3-Clause

import pathlib

from spack_repo.builtin.build_systems.cmake import CMakePackage, generator

from spack.package import *


class Cepheus(CMakePackage):
    """Reliable multicast for RDMA, done by the network: groups over libibverbs, MPI_Bcast by multicast, replicated volumes, an
    emulated NIC and switch."""

    # There is no public address: Spack clones the checkout that has this file.
    git = pathlib.Path(__file__).resolve().parents[6].as_uri()

    license("BSD-3-Clause")

    version("main", branch="main")

    variant("openmpi", default=True, description="coll/cepheus, the component of Open MPI")
    variant("pmpi", default=True, description="libcepheus-mpi.so, which MPI programs preload")
    variant("ucx", default=True, description="rc_mcast, the transport of UCX")
    variant("nic", default=True, description="libcepheus-roce.so, the emulated NIC")
    variant("switch", default=True, description="cepheus-switch, cepheusctl, the simulators, and with the NIC cepheus-run")
    variant("dpdk", default=False, description="the one-armed switch's driver for DPDK")
    conflicts("+dpdk", when="~switch")

    generator("ninja")
    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3.11:", type=("build", "run"))

    depends_on("asio")
    depends_on("cli11")
    depends_on("fmt")
    depends_on("hwloc@2:")
    depends_on("isa-l")
    depends_on("nbdkit")
    depends_on("nlohmann-json")
    depends_on("openssl@3:")
    depends_on("rdma-core")
    depends_on("spdlog")
    depends_on("systemd")
    depends_on("tl-expected")
    # A component needs headers that only --with-devel-headers installs, which Spack's recipe of Open MPI does not pass. Without them
    # the build leaves coll/cepheus out. External Open MPIs such as Debian's libopenmpi-dev have them.
    depends_on("openmpi@4.1,5.0", when="+openmpi")
    # ucx-transport/uct_layout.h knows the layouts of these versions.
    depends_on("ucx@1.13,1.18", when="+ucx")
    depends_on("cpp-httplib", when="+switch")
    depends_on("libpcap", when="+switch")
    depends_on("tomlplusplus", when="+switch")
    depends_on("dpdk", when="+dpdk")

    build_targets = ["installed"]

    def cmake_args(self):
        variants = ("openmpi", "pmpi", "ucx", "nic", "switch", "dpdk")
        return [
            *(self.define_from_variant(f"CEPHEUS_{variant.upper()}", variant) for variant in variants),
            self.define("BUILD_TESTING", False),
            self.define("CMAKE_INSTALL_LIBDIR", "lib"),
            self.define("CMAKE_SKIP_INSTALL_ALL_DEPENDENCY", True),
        ]

    # As tools/modulefile/cepheus.in; Spack itself sets PATH, MANPATH and PKG_CONFIG_PATH.
    def setup_run_environment(self, env):
        env.prepend_path("LD_LIBRARY_PATH", self.prefix.lib)
        env.prepend_path("LIBRARY_PATH", self.prefix.lib)
        env.prepend_path("CPATH", self.prefix.include)
        if self.spec.satisfies("+openmpi"):
            components = self.prefix.lib.cepheus.openmpi
            env.set("OMPI_MCA_mca_base_component_path", f"SYSTEM_DEFAULT:{components}:USER_DEFAULT")

    def test_programs(self):
        """each program starts, and prints the same version"""
        names = ["cepheus", "cepheus-cmd", "cepheus-replica"]
        if self.spec.satisfies("+switch"):
            names += ["cepheus-switch", "cepheusctl", "cepheus-sim", "cepheus-volume-sim"]
        if self.spec.satisfies("+nic+switch"):
            names.append("cepheus-run")
        versions = {which(self.prefix.bin.join(name), required=True)("--version", output=str.split).split()[-1] for name in names}
        assert len(versions) == 1, f"versions: {versions}"

    def test_seeds(self):
        """a hundred random networks, simulated"""
        if self.spec.satisfies("~switch"):
            raise SkipTest("the simulator belongs to +switch")
        out = which(self.prefix.bin.join("cepheus-sim"), required=True)("--seeds", "100", output=str.split, error=str.split)
        assert " 0 failed" in out, out
