"""Trace files of a run, and a folder of them with a picture."""

from pathlib import Path

from fenchel.cli.failures import Failure, require_place, writing
from fenchel.cli.output import say


def save_trace(path, trace, certificate, settings) -> None:
    """Write the trace and the certificate of a run, with its settings: seed, constants, tol."""
    from fenchel.io.trace import write_trace

    known = ("seed", "C", "sigma2", "c1", "c2", "l1_ratio", "tol")
    facts = {name: settings[name] for name in known if settings.get(name) is not None}
    with writing(path):
        write_trace(path, trace, **facts, certificate=certificate.to_dict())


def settings_of(model) -> dict:
    """Seed, constant and tol of an estimator, for `save_trace`."""
    settings = model.get_params(deep=False)
    if settings.get("sigma2") is not None or settings.get("c2") is not None:
        settings["C"] = None
    return settings | {"seed": settings["random_state"]}


def trace_folder(name, picture: str) -> Path | None:
    """The folder to write into, made if need be; None where none is named."""
    if name is None:
        return None
    folder = Path(name)
    if folder.exists() and not folder.is_dir():
        raise Failure(f"{folder}: is a file, expected a folder to write into")
    if not folder.parent.is_dir():
        raise Failure(f"{folder}: cannot be made, there is no folder {folder.parent}")
    with writing(folder):
        folder.mkdir(exist_ok=True)
    require_place(folder / picture)
    return folder


def draw(path, traces, tol, one_problem: bool = True) -> None:
    """The picture of all runs, if matplotlib is there."""
    from fenchel.report.plots import plot_race

    try:
        with writing(path):
            plot_race(traces, path, tol, one_problem)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        say("no plot: matplotlib is missing; pip install 'fenchel[report]' brings it")
