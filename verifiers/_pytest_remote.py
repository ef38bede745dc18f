"""A pytest plugin: the workspace's modules are those of the process under test, tests and pytest are here.

What a test imports of the workspace is looked up over GYMFLOW_CHANNEL. So no code of the workspace runs where the verdict is made,
and nothing there can be patched, planted or ended by it. Runs in the sandbox.
"""

# Runs in the sandbox, by whichever Python that has.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, check-untyped-defs=False

import builtins
import importlib.abc
import importlib.machinery
import json
import os
import signal
import sys
import types

from _pytest_report import _tell
from _python_tester import Client

FOUND_HERE = ("__version__", "__all__", "__doc__")
"""Special names that a module of the workspace may have; the others are the import system's, here."""


def _exported(names, bound):
    """What `from module import *` may bind: nothing that the tests or the language have under that name already."""
    return [
        name for name in names
        if isinstance(name, str) and name.isidentifier() and name not in bound and not hasattr(builtins, name)
    ]  # fmt: skip


class RemoteModule(types.ModuleType):
    """A module in the process under test."""

    def __getattr__(self, name):
        if name.startswith("__") and name not in FOUND_HERE:
            raise AttributeError(name)
        value = self.__spec__.loader.client.ask("getattr", id=self.__spec__.loader_state, name=name)
        return value if name != "__all__" else _exported(value, sys._getframe(1).f_globals)

    def __setattr__(self, name, value):
        if name.startswith("__") or isinstance(value, RemoteModule):
            super().__setattr__(name, value)
        else:
            client = self.__spec__.loader.client
            client.ask("setattr", id=self.__spec__.loader_state, name=name, args=[client.plain(value)])

    def __delattr__(self, name):
        self.__spec__.loader.client.ask("delattr", id=self.__spec__.loader_state, name=name)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules whose first name is one of `names` in the process under test."""

    def __init__(self, client, names):
        self.client = client
        self.names = frozenset(names)

    def find_spec(self, fullname, path=None, target=None):
        if fullname.partition(".")[0] not in self.names:
            return None
        found = self.client.ask("module", name=fullname)
        if found is None:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, loader_state=found._number, is_package=True)

    def create_module(self, spec):
        return RemoteModule(spec.name)

    def exec_module(self, module):
        pass


def _end_time(*_):
    _tell(timeout=True)
    os._exit(0)


_job = json.loads(os.environ.pop("GYMFLOW_WORKSPACE"))
_client = Client(int(os.environ.pop("GYMFLOW_CHANNEL")), _job["own_operators"])
signal.signal(signal.SIGALRM, _end_time)
signal.setitimer(signal.ITIMER_REAL, _job["time_limit_s"])
_client.ask("workspace", archive=_job["archive"], folder=_job["folder"])
# The task's own modules first; what the agent added must not stand in for a library that the tests use.
sys.meta_path.insert(0, Finder(_client, _job["modules"]))
sys.meta_path.append(Finder(_client, _job["added"]))
