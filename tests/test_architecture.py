"""The shape of the package: who may import whom, and what stays small."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import streamlog
from streamlog.compiler import PASSES
from streamlog.runtime.checkpoint import MANIFEST, ROWS

PACKAGE = Path(streamlog.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))

# Each may import from those in earlier rows, and from itself.
LAYERS = (
    ("codes",),
    ("diagnostics",),
    ("syntax",),
    ("analysis",),
    ("rewrite",),
    ("plan",),
    ("stages",),
    ("compiler",),
    ("runtime",),
    ("kernel",),
    ("duck", "spark"),
    ("control",),
    ("app",),
    ("notebook",),
)
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
# The public API is made of all but the app, and imports what it offers when it is asked for.
ROOT_RANK = RANK["app"]

ONLY_IN = {
    "click": "app",
    "prompt_toolkit": "app",
    "pygments": "app",
    "rich": "app",
    "pyparsing": "syntax",
    "re2": "analysis",
    "duckdb": "duck",
    "IPython": "notebook",
    "prometheus_client": "control",
    "graphframes": "spark",
    "pyspark": "spark",
    "sqlglot": "plan",
}
MOST_LINES = 450


def part_of(path: Path) -> str:
    """`syntax` for streamlog/syntax/parse.py, `codes` for streamlog/codes.py."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """The line and full name of every import, those inside functions included."""
    here = ("streamlog", *path.relative_to(PACKAGE).parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level] if node.level else ()
            module = ".".join((*base, *filter(None, [node.module])))
            yield node.lineno, module
            # `from streamlog import codes` imports a module, not a name.
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def wrong_direction(path: Path) -> list[str]:
    part = part_of(path)
    rank = ROOT_RANK if part == "__init__" else RANK[part]
    found = []
    for line, name in imports(path):
        parts = name.split(".")
        if parts[0] != "streamlog" or len(parts) < 2 or parts[1] not in RANK:
            continue
        if parts[1] != part and RANK[parts[1]] >= rank:
            found.append(f"{path.relative_to(PACKAGE)}:{line} imports {name}")
    return found


def test_every_module_has_a_place() -> None:
    assert {part_of(path) for path in MODULES} - {"__init__"} <= set(RANK)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_down_the_page(path: Path) -> None:
    assert wrong_direction(path) == []


def test_a_wrong_import_is_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path)
    module = tmp_path / "syntax" / "parse.py"
    module.parent.mkdir()
    module.write_text(
        "from ..analysis import schema\n"
        "from streamlog import app, codes\n"
        "def f():\n"
        "    import streamlog.compiler\n"
        "    from . import ast\n"
    )
    assert {line.split()[0] for line in wrong_direction(module)} == {
        f"{Path('syntax', 'parse.py')}:{n}" for n in (1, 2, 4)
    }


def test_the_picture_shows_the_packages() -> None:
    """The diagram in docs/architecture.md has every package, and its arrows go down the page."""
    page = PACKAGE.parent / "docs" / "architecture.md"
    picture = page.read_text(encoding="utf-8").split("```mermaid")[1].split("```")[0]
    arrows = re.findall(r"(\w+)(?:\[.*?\]|\(.*?\))* (?:-->|-\.->) (\w+)", picture)
    assert {n for arrow in arrows for n in arrow if n in RANK} >= {
        path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()
    }
    packages = [arrow for arrow in arrows if set(arrow) <= RANK.keys()]
    assert all(RANK[above] < RANK[below] for above, below in packages)
    assert len(packages) >= len(LAYERS) - 2  # codes and diagnostics share a box


def names_in(path: Path) -> set[str]:
    """The functions, classes, methods and constants of a module; methods as `Class.method`."""
    found: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.FunctionDef(name=name):
                found.add(name)
            case ast.ClassDef(name=name, body=body):
                methods = (n.name for n in body if isinstance(n, ast.FunctionDef))
                found |= {name, *(f"{name}.{method}" for method in methods)}
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                found.add(name)
            case _:
                pass
    return found


def test_every_place_in_the_code_exists() -> None:
    page = (PACKAGE.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    places = re.findall(r"`((?:\w+/)*\w+\.py):([\w.]+)`", page)
    assert len(places) > 40
    wrong = [f"{file}:{name}" for file, name in places if name not in names_in(PACKAGE / file)]
    assert wrong == []


def test_the_pages_list_the_passes() -> None:
    page = (PACKAGE.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page.split("| pass | done by | stage |")[1].split("\n\n")[0]
    names = [p.name for p in PASSES]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == names
    assert f"`{' → '.join(names)}`" in (PACKAGE.parent / "CONTRIBUTING.md").read_text("utf-8")


def test_the_page_names_the_files_of_a_checkpoint() -> None:
    page = (PACKAGE.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    (row,) = (line for line in page.split("\n") if line.startswith("| checkpoint |"))
    assert {MANIFEST, ROWS} <= set(re.findall(r"`([\w.]+)`", row))


@pytest.mark.parametrize(("library", "part"), sorted(ONLY_IN.items()))
def test_a_library_has_one_importer(library: str, part: str) -> None:
    importers = {
        part_of(path)
        for path in MODULES
        for _, name in imports(path)
        if name.split(".")[0] == library
    }
    assert importers <= {part}


def test_modules_stay_small() -> None:
    lines = {
        str(path.relative_to(PACKAGE)): len(path.read_text(encoding="utf-8").splitlines())
        for path in MODULES
    }
    assert {name: n for name, n in lines.items() if n > MOST_LINES} == {}


def test_only_the_app_prints() -> None:
    printing = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in MODULES
        if part_of(path) not in ("app", "notebook")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
    ]
    assert printing == []


def imported_by(code: str, *args: str) -> set[str]:
    """The top-level modules that are there when a fresh Python has run the code."""
    report = "\nimport sys; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    done = subprocess.run(
        [sys.executable, "-c", code + report, *args], capture_output=True, text=True, check=True
    )
    return set(done.stdout.splitlines()[-1].split())


def test_import_streamlog_is_light() -> None:
    assert imported_by("import streamlog") & {"pyspark", "duckdb", "rich", "click"} == set()


@pytest.mark.parametrize("command", ["--help", "check", "fmt", "run --help"])
def test_only_what_runs_a_program_needs_an_engine(tmp_path: Path, command: str) -> None:
    program = tmp_path / "p.slog"
    program.write_text("output p.\np(T, X) <- q(T, X).\n")
    code = (
        "import sys\n"
        "from streamlog.app.cli import main\n"
        "assert main(sys.argv[1:], standalone_mode=False) == 0\n"
        "assert not {'streamlog.kernel', 'streamlog.spark', 'streamlog.runtime'} & {*sys.modules}"
    )
    args = command.split() if "help" in command else [command, str(program)]
    loaded = imported_by(code, *args)
    assert loaded & {"pyspark", "py4j", "duckdb", "pyarrow"} == set()
    # Nothing to print, so nothing to print it with.
    assert command == "--help" or loaded & {"rich", "pygments"} == set()
