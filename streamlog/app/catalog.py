"""`streamlog catalog`: what instances read and answer, and of which types."""

from __future__ import annotations

import click


@click.command("catalog")
@click.option(
    "--registry",
    metavar="DIR",
    envvar="STREAMLOG_REGISTRY",
    show_envvar=True,
    help="The folder of instances.  [default: .streamlog of the project]",
)
@click.pass_context
def command(ctx: click.Context, /, registry: str | None) -> None:
    """List what all instances read and answer.

    \b
    streamlog catalog
    """
    from rich.text import Text

    from streamlog.app.instance import refusing
    from streamlog.app.render import console
    from streamlog.app.snippet import visible
    from streamlog.app.tables import flat, plain_table
    from streamlog.app.upgrade import compiled_or_exit
    from streamlog.control.registry import instances, registry_of
    from streamlog.runtime.addresses import redacted

    table = plain_table("instance", "predicate", "is", "columns", "place")
    with refusing():
        for known in instances(registry_of(registry)):
            program, version = compiled_or_exit(ctx, str(known.program)), known.version
            schema, outputs = program.schema, program.contract.outputs
            places = dict(text.partition("=")[::2] for text in (*version.inputs, *version.outputs))
            for name in dict.fromkeys((*schema.inputs, *outputs)):
                kind = "output" if name in outputs else schema[name].kind.value
                columns = ", ".join(
                    f"{column}: {program.types.column(name, position) or 'any'}"
                    for position, column in enumerate(schema.column_names[name])
                )
                place = places.get(name, "")
                cells = (known.name, name, kind, columns, visible(redacted(place, [place])))
                table.add_row(*map(Text, cells))
    out = console()
    out.print(flat(table, out.width))
