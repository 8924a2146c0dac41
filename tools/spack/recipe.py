"""The Spack recipe without Spack: a stand-in has the names that the recipe imports."""

import importlib.util
import pathlib
import re
import subprocess
import sys
import types
import unittest
import unittest.mock

SOURCE = pathlib.Path(__file__).resolve().parents[2]
FILE = SOURCE / "tools/spack/spack_repo/cepheus/packages/cepheus/package.py"


class Prefix(str):
    def __getattr__(self, name):
        return Prefix(f"{self}/{name}")

    def join(self, name):
        return f"{self}/{name}"


class Spec:
    def __init__(self, on):
        self.on = on

    def satisfies(self, text):
        return all((sign == "+") == (name in self.on) for sign, name in re.findall(r"([+~])(\w+)", text))


class Environment:
    """The variables that setup_run_environment() changes: name -> (method, value)."""

    def __init__(self):
        self.changes = {}

    def set(self, name, value):
        self.changes[name] = ("set", str(value))

    def prepend_path(self, name, value):
        self.changes[name] = ("prepend", str(value))


def which(path, required):
    """As Spack's: the program, to be called with its arguments; prints of both streams are returned."""
    assert required and pathlib.Path(path).exists(), path
    return lambda *words, **_: subprocess.run([path, *words], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True).stdout


class CMakePackage:
    def __init__(self, on, prefix):
        self.spec, self.prefix = Spec(on), Prefix(prefix)

    def define(self, option, value):
        return f"-D{option}:BOOL={'ON' if value else 'OFF'}" if isinstance(value, bool) else f"-D{option}:STRING={value}"

    def define_from_variant(self, option, variant):
        return self.define(option, variant in self.spec.on)


class Recipe:
    def __init__(self):
        self.variants = {}  # name -> default
        self.dependencies = {}  # package -> the variant that needs it, or None
        self.needs = {}  # variant -> the variant that it needs
        package, cmake = types.ModuleType("spack.package"), types.ModuleType("cmake")
        package.variant = lambda name, default, description: self.variants.update({name: default})
        package.depends_on = self.depends_on
        package.conflicts = lambda spec, when: self.needs.update({spec.strip("+"): when.strip("~")})
        package.which, package.SkipTest = which, unittest.SkipTest
        package.version = package.license = cmake.generator = lambda *_, **__: None
        cmake.CMakePackage = CMakePackage
        modules = {"spack": types.ModuleType("spack"), "spack.package": package,
                   **{name: types.ModuleType(name) for name in ("spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems")},
                   "spack_repo.builtin.build_systems.cmake": cmake}
        spec = importlib.util.spec_from_file_location("cepheus_recipe", FILE)
        module = importlib.util.module_from_spec(spec)
        with unittest.mock.patch.dict(sys.modules, modules):
            spec.loader.exec_module(module)
        self.package = module.Cepheus

    def depends_on(self, spec, when=None, type=None):  # pylint: disable=redefined-builtin
        del type
        self.dependencies[re.match(r"[\w-]+", spec).group()] = when and when.strip("+")

    def cmake_args(self, on):
        return self.package(on, "/prefix").cmake_args()

    def environment(self, on, prefix):
        environment = Environment()
        self.package(on, prefix).setup_run_environment(environment)
        return environment.changes

    def test(self, on, prefix):
        """Runs the tests of an installed package, as `spack test run` does."""
        package = self.package(on, prefix)
        for name in [name for name in dir(package) if name.startswith("test_")]:
            try:
                getattr(package, name)()
            except unittest.SkipTest as reason:
                print(f"{name}: SKIPPED: {reason}")

    def combinations(self):
        """Sets of variants: none, each alone, all, all but each; always with the variants that they need."""
        every = frozenset(self.variants)
        alone = [frozenset([name, self.needs.get(name, name)]) for name in self.variants]
        without = [every - {name} - {other for other, needed in self.needs.items() if needed == name} for name in self.variants]
        return list(dict.fromkeys([frozenset(), *alone, every, *without]))


def text_of(on, variants):
    return "".join(f"{'+' if name in on else '~'}{name}" for name in variants)
