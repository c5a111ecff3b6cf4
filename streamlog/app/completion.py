"""`streamlog completion`: the script a shell loads to complete our commands."""

from __future__ import annotations

import click
from click.shell_completion import ShellComplete, get_completion_class


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the shell's completion script.

    \b
    bash    eval "$(streamlog completion bash)"                     in ~/.bashrc
    zsh     eval "$(streamlog completion zsh)"                      in ~/.zshrc
    fish    streamlog completion fish > ~/.config/fish/completions/streamlog.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None
    # The base class's source(): bash's own starts a bash to ask for its version.
    script = kind(ctx.find_root().command, {}, "streamlog", "_STREAMLOG_COMPLETE")
    click.echo(ShellComplete.source(script))
