"""Modules that others import at every start of a program, and use in few."""

import sys
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec
from types import ModuleType


class Late(ModuleType):
    """Stands for a module until somebody asks for something in it."""

    def __getattr__(self, name):
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


def import_late(name: str) -> None:
    """Let `import name` cost nothing in this process until the module, where it is installed, is used."""
    parent = name.rpartition(".")[0]
    spec = PathFinder.find_spec(name, find_spec(parent).submodule_search_locations if parent else None)
    if spec and name not in sys.modules:
        sys.modules[name] = Late(name)
        sys.modules[name].__spec__ = spec
