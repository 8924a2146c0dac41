"""For tests of cepheus-run: the script as a module, and a reader of command lines."""

import importlib.machinery
import importlib.util
import os
import pathlib
import sys

SCRIPT = os.environ.get("CEPHEUS_RUN", str(pathlib.Path(__file__).resolve().parent / "cepheus-run.in"))

sys.dont_write_bytecode = True


def load_script():
    loader = importlib.machinery.SourceFileLoader("cepheus_run", SCRIPT)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("cepheus_run", loader))
    loader.exec_module(module)
    return module


cepheus_run = load_script()


def pairs(words, option):
    """The arguments of each `option` in words."""
    return [words[i + 1] for i, word in enumerate(words) if word == option]
