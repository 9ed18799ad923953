"""Compiling is told, once; kernels without a way in from Python are called by kernels alone."""

import ast
import io
import sys
from pathlib import Path

import numba
import numpy as np

import fenchel
from commands import run
from fenchel import _compiling
from fenchel._cache import njit

PACKAGE = Path(fenchel.__file__).resolve().parent


class Terminal(io.StringIO):
    def isatty(self):
        return True


def compile_one():
    """A kernel that looks like the package's own, compiled now."""

    def add(x):
        return x + 1.0

    add.__module__ = "fenchel.somewhere"
    assert njit(add)(1.0) == 2.0


def look_at(monkeypatch, patience):
    """A terminal, and somebody in front of it who has so much patience."""
    monkeypatch.setattr(_compiling, "_told", [])
    monkeypatch.setattr(_compiling, "PATIENCE", patience)
    monkeypatch.setattr(sys, "stderr", Terminal())
    return sys.stderr


def test_who_waits_is_told_once(monkeypatch):
    terminal = look_at(monkeypatch, patience=0.0)
    compile_one()
    compile_one()
    assert terminal.getvalue().count("compiling kernels, once on this machine") == 1


def test_a_moment_is_not_worth_a_word(monkeypatch):
    terminal = look_at(monkeypatch, patience=np.inf)
    compile_one()
    assert terminal.getvalue() == ""


def test_others_are_told_instead(monkeypatch):
    terminal, heard = look_at(monkeypatch, patience=0.0), []
    with _compiling.heard_by(lambda compiling, seconds, kernels: heard.append((compiling, kernels))):
        compile_one()
        compile_one()
    assert [compiling for compiling, _ in heard] == [True, False, True, False]
    assert heard[-1][1] == heard[0][1] + 1 and terminal.getvalue() == ""


def test_warm_compiles_a_kind_and_says_where():
    result = run("warm", "maxent")
    assert result.exit_code == 0
    assert "maxent" in result.stdout and "kernels in" in result.stdout and "crf" not in result.stdout


# ---- helpers


def decorators(function):
    return [ast.unparse(each) for each in function.decorator_list]


def is_kernel(function):
    """What runs compiled only; what is implemented for a named tuple is called by kernels alone too."""
    return any(
        each.startswith(("njit", "helper", "external")) or ".implement(" in each
        for each in decorators(function)
    )


def helpers_of(tree):
    """Names of the functions of a module that are compiled without a way in from Python."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {each.name for each in functions if any(d.startswith("helper") for d in decorators(each))}


def names_outside_kernels(node):
    """(name, or module.name, line) of what is mentioned in Python."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef) and is_kernel(child):
            continue
        if isinstance(child, ast.Name | ast.Attribute) and isinstance(child.ctx, ast.Load):
            yield ast.unparse(child), child.lineno
        yield from names_outside_kernels(child)


def reachable(path, tree, trees):
    """What this file may call helpers by: their names, or those of their modules."""
    names = helpers_of(tree) if path in trees else set()
    modules = {each.stem: helpers_of(trees[each]) for each in trees}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fenchel"):
            from_module = modules.get(node.module.split(".")[-1], set())
            names |= {alias.name for alias in node.names} & from_module
            names |= {f"{a.name}.{h}" for a in node.names if a.name in modules for h in modules[a.name]}
    return names


def test_python_calls_no_helper():
    """It would crash the process. (So would the py_func of a kernel that calls one.)"""
    trees = {path: ast.parse(path.read_text()) for path in PACKAGE.rglob("*.py")}
    tests = {path: ast.parse(path.read_text()) for path in Path(__file__).parent.rglob("*.py")}
    wrong = []
    for path, tree in (trees | tests).items():
        names = reachable(path, tree, trees)
        wrong += [f"{path.name}:{at}: {name}" for name, at in names_outside_kernels(tree) if name in names]
    assert not wrong, wrong
    assert sum(len(helpers_of(tree)) for tree in trees.values()) > 100


def test_functions_of_no_module_are_compiled_in_peace():
    """skglm's jitclasses have such; the listener must not break what is not fenchel's."""

    def double(x):
        return 2 * x

    double.__module__ = None
    assert numba.njit(double)(3) == 6
