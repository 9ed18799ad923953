"""Groups of commands that are imported when they are called, and the place where errors become sentences."""

import os
import sys
from collections.abc import Callable
from difflib import get_close_matches
from importlib import import_module

import click

from fenchel.cli.failures import as_failure
from fenchel.cli.kinds import KINDS, Kind, load_kind


def _remember_debug(context, _parameter, value):
    if value:
        context.meta["fenchel.debug"] = True


debug_option = click.option(
    "--debug",
    is_flag=True,
    expose_value=False,
    callback=_remember_debug,
    help="On an error show Python's traceback instead of one sentence.",
)


class LazyGroup(click.Group):
    """A group whose commands are named by `module:attribute`, in the order in which help lists them."""

    def __init__(self, *args, targets: dict[str, str], **settings):
        super().__init__(*args, **settings)
        self.targets = targets

    def list_commands(self, ctx):
        return list(self.targets)

    def resolve_command(self, ctx, args):
        near = get_close_matches(args[0], self.targets, n=1)
        if near and args[0] not in self.targets:
            ctx.fail(f"No such command {args[0]!r}, did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)

    def load(self, name: str) -> click.Command:
        """The command of that name, imported now."""
        module, _, attribute = self.targets[name].partition(":")
        return getattr(import_module(module), attribute)

    def get_command(self, ctx, cmd_name):
        if cmd_name not in self.targets:
            return None
        command = self.load(cmd_name)
        # Everybody types --debug at the end of the line that has just failed.
        if all(parameter.name != "debug" for parameter in command.params):
            debug_option(command)
        return command


class KindGroup(LazyGroup):
    """A verb with a command for each kind, which `make` makes of the kind."""

    def __init__(self, *args, make: Callable[[Kind], click.Command], kinds=tuple(KINDS), **settings):
        targets = {name: KINDS[name] for name in kinds}
        super().__init__(*args, targets=targets, subcommand_metavar="KIND ...", **settings)
        self.make = make

    def load(self, name: str) -> click.Command:
        return self.make(load_kind(name))


def kind_help(kind: Kind, verb: str, before: str, after: str) -> str:
    """Help of a verb for a kind: paragraphs, then the kind's examples, then more paragraphs."""
    calls = "\n".join(f"  fenchel {verb} {kind.name} {call}" for call in getattr(kind.calls, verb))
    return f"{before}\n\n\b\nExample:\n{calls}\n\n{after}"


def _give_up_output() -> None:
    """Let go of what stdout cannot take (a full disk): Python would try again at its end, and exit by 120."""
    try:
        sys.stdout.flush()
    except OSError:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())


class Root(LazyGroup):
    """The outermost group: turns the errors of its commands into one sentence and an exit code."""

    def invoke(self, ctx):
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # here, where a reader who left (`| head`) is still handled
            return result
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise  # click knows what to do with its own, and ends quietly on a broken pipe
        except (Exception, KeyboardInterrupt) as error:
            _give_up_output()
            if ctx.meta.get("fenchel.debug"):
                raise
            raise as_failure(error) from None
