#!/usr/bin/python3
"""The changes of lines by ./run mutants."""

import pathlib
import re
import subprocess
import tempfile
import unittest

import mutants
import mutations


def changes(line, operator):
    return [after for name, after in mutations.of_line(line) if name == operator]


class Lines(unittest.TestCase):
    def test_conditions_are_negated(self):
        self.assertEqual(changes("  if (a && f(b)) return;", "condition negated"), ["  if (!(a && f(b))) return;"])
        self.assertEqual(changes("  } else if (x != 0) {", "condition negated"), ["  } else if (!(x != 0)) {"])

    def test_conditions_that_declare_or_go_on_stay(self):
        self.assertEqual(changes("  if (auto x = f()) {", "condition negated"), [])
        self.assertEqual(changes("  if (a &&", "condition negated"), [])

    def test_calls_are_removed(self):
        self.assertEqual(changes("  queue_.push_back(std::move(x));", "call removed"), ["  ;"])
        for line in ("  return f();", "  const int x = f();", "  f(a,", "  delete x;", "int f();"):
            self.assertEqual(changes(line, "call removed"), [], line)

    def test_constants_are_off_by_one(self):
        self.assertEqual(changes("  x = a[3] + 10;", "constant off by one"), ["  x = a[4] + 10;", "  x = a[3] + 11;"])
        for line in ('  say("7");', "  std::uint32_t x;", "  x = 0x10;", "  // 7", "  f<3>();"):
            self.assertEqual(changes(line, "constant off by one"), [], line)

    def test_comparisons_move(self):
        self.assertEqual(changes("  while (a < b && c >= d) {", "comparison moved"),
                         ["  while (a <= b && c >= d) {", "  while (a < b && c > d) {"])
        self.assertEqual(changes("  std::vector<int> x;", "comparison moved"), [])
        self.assertEqual(changes("  a << b;", "comparison moved"), [])

    def test_checks_and_comments_stay(self):
        for line in ("  assert(x < 3);", "// if (a) b();", "#if X > 3", "static_assert(a < 1);"):
            self.assertEqual(list(mutations.of_line(line)), [], line)


class Choice(unittest.TestCase):
    def test_a_seed_chooses_the_same_again_from_every_operator(self):
        root = mutants.ROOT
        everything = mutations.of_folder(root, "replica/engine")
        first = list(mutations.chosen(everything, 7))[:60]
        self.assertEqual(first, list(mutations.chosen(everything, 7))[:60])
        self.assertNotEqual(first, list(mutations.chosen(everything, 8))[:60])
        self.assertEqual(len({each.operator for each in first}), 4)
        self.assertEqual(sorted(map(str, mutations.chosen(everything, 7))), sorted(map(str, everything)))

    def test_every_engine_has_enough_to_change(self):
        for folder in mutants.ENGINES:
            left = [each for each in mutations.of_folder(mutants.ROOT, folder) if not mutants.is_left_out(each)]
            self.assertGreater(len(left), 60, folder)

    def test_an_engines_checks_of_itself_are_left_alone(self):
        with tempfile.TemporaryDirectory() as root:
            pathlib.Path(root, "a.cc").write_text("void A::check_consistent() const {\n  if (x > 0) {\n    f();\n  }\n}\nint y = 7;\n  check_consistent();\n")
            self.assertEqual([each.before for each in mutations.of_folder(root, ".")], ["int y = 7;"])

    def test_support_of_tests_is_left_alone(self):
        for folder in mutants.ENGINES:
            files = {each.file for each in mutations.of_folder(mutants.ROOT, folder) if not mutants.is_left_out(each)}
            self.assertEqual({file for file in files if re.search(r"/test_|_test(ing)?\.|(icrc|mrp)_packets\.|capture_reader", file)}, set())

    def test_every_engine_has_its_tests(self):
        declared = set()
        for top in {folder.split("/")[0] for folder in mutants.ENGINES}:
            for path in (mutants.ROOT / top).rglob("CMakeLists.txt"):
                folder = re.sub("[/-]", "_", path.parent.relative_to(mutants.ROOT).as_posix())
                for part in re.findall(r"\bcepheus_test\(\s*(\w+)", path.read_text()):  # as _cepheus_name() in tools/cmake/
                    declared.add(f"{folder}_test" if part == "SOURCES" else f"{folder}_{part}_test")
        self.assertEqual({test for tests in mutants.ENGINES.values() for test in tests} - declared, set())


class Trial(unittest.TestCase):
    """A tree of one file, and a test program that reads it."""

    def try_change(self, expected, test):
        with tempfile.TemporaryDirectory() as scratch:
            class Copy:
                tree = pathlib.Path(scratch)

                def builds(self, _tests):
                    return "((" not in (self.tree / "a.cc").read_text()

                def passes(self, command):
                    return subprocess.run(["grep", "-q", command, self.tree / "a.cc"], check=False).returncode == 0

            source = "int f() {\n  return x[3];\n}\n"
            (Copy.tree / "a.cc").write_text(source)
            mutation = mutations.Mutation("a.cc", 1, "any", "  return x[3];", expected[1])
            self.assertEqual(mutants.try_one(Copy(), mutation, [test]), expected[0])
            self.assertEqual((Copy.tree / "a.cc").read_text(), source, "it is as it was")

    def test_a_change_is_noticed_survives_or_does_not_build(self):
        self.try_change(("killed", "  return x[4];"), "3")
        self.try_change(("survived", "  return x[4];"), "return")
        self.try_change(("does not build", "  return ((x[3];"), "3")


if __name__ == "__main__":
    unittest.main()
