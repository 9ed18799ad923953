"""fenchel completion: what a shell needs to complete commands, options and their values."""

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command(short_help="Print what completes commands and options in a shell.")
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell):
    """Print a script that completes commands, options, solvers and names of files in SHELL.

    The script asks `fenchel` itself, so that it knows what the installed version knows.

    \b
    Example:
      eval "$(fenchel completion bash)"                         in ~/.bashrc
      eval "$(fenchel completion zsh)"                          in ~/.zshrc
      fenchel completion fish > ~/.config/fish/completions/fenchel.fish
    """
    from fenchel.cli import cli

    script = get_completion_class(shell)(cli, {}, "fenchel", "_FENCHEL_COMPLETE")
    click.echo(script.source_template % script.source_vars())
