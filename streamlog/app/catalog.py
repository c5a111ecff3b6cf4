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
    from streamlog.app.instance import refusing
    from streamlog.app.render import console
    from streamlog.app.tables import flat, plain_table
    from streamlog.app.upgrade import compiled_or_exit
    from streamlog.control.registry import instances, registry_of

    table = plain_table("instance", "predicate", "is", "columns", "place")
    with refusing():
        for known in instances(registry_of(registry)):
            program = compiled_or_exit(ctx, str(known.program))
            pairs = (
                text.partition("=")[::2] for text in (*known.version.inputs, *known.version.outputs)
            )
            places = dict(pairs)
            for name in (*program.schema.inputs, *program.contract.outputs):
                kind = (
                    "output"
                    if name in program.contract.outputs
                    else program.schema[name].kind.value
                )
                names = program.schema.column_names[name]
                columns = ", ".join(
                    f"{column}: {program.types.column(name, position) or 'any'}"
                    for position, column in enumerate(names)
                )
                table.add_row(known.name, name, kind, columns, places.get(name, ""))
    out = console()
    out.print(flat(table, out.width))
