"""Limits as options of commands, and predicates without columns at their surfaces."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest

from streamlog.app.limits import bytes_of

GROWING = """stream s(T: int, n: int).
output p.
p(T, N) <- s(T, N).
p(T, M) <- p(T, N), M = N + 1.
s(1, 0).
test "it ends" { s(2, 0). end. expect p(2, 0). }
"""
BARE = """table u().
table v(x: int).
output ok, p, no.
ok() <- u().
no() <- v(5).
p(X) <- v(X), ok().
v(1).
test "as facts" { u(). expect ok(). expect none no. expect p(1). }
test "from a file" { given u from "u.csv". expect ok from "ok.jsonl". }
"""


@pytest.fixture
def run(run):
    return lambda *args, **more: run(*map(str, args), **more)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--max-rounds=30", "stopped after 30 rounds (--max-rounds): "),
        ("--max-rows=30", "stopped after 30 rows (--max-rows): "),
        ("--max-seconds=0.2", "stopped after 0.2 seconds (--max-seconds): "),
    ],
)
def test_run_and_test_and_repl(run, write, option: str, said: str) -> None:
    path = write("growing.slog", GROWING)
    result = run("run", "--engine", "local", path, option)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("warning[SL0501]: ")
    assert f"\nstreamlog: {said}the recursion of p had " in result.stderr
    result = run("test", path, option)
    assert result.exit_code == 1
    assert said in " ".join(result.stdout.split())
    typed = "q(T, X) <- r(T, X).\nq(T, X + 1) <- q(T, X).\nr(1, 1).\n"
    assert said in " ".join(run("repl", option, input=typed).stdout.split())


def test_memory(run, write) -> None:
    path = write("doubling.slog", GROWING.replace("n: int", "x: string").replace("0", "a"))
    path.write_text(path.read_text().replace("N + 1", "N ++ N"))
    result = run("run", "--engine", "local", path, "--max-memory", "400MB")
    assert result.exit_code == 1
    said = "streamlog: stopped for lack of memory (--max-memory is 400 MB): more was needed for "
    assert f"\n{said}the rule at " in result.stderr


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("512MB", 2**29),
        ("1.5 GB", 3 * 2**29),
        ("4gb", 2**32),
        ("10kB", 10240),
        ("7B", 7),
        ("4", None),
        ("GB", None),
        ("-1GB", None),
        ("0GB", None),
        ("4XB", None),
        ("٤GB", None),
    ],
)
def test_amounts_of_memory(text: str, number: int | None) -> None:
    assert bytes_of(text) == number


@pytest.mark.parametrize(
    "option", ["--max-memory=4", "--max-rounds=0", "--max-rows=x", "--max-seconds=-1"]
)
def test_options_that_make_no_sense(run, write, option: str) -> None:
    result = run("run", "--engine", "local", write("growing.slog", GROWING), option)
    assert result.exit_code == 2
    assert option.split("=")[0] in result.stderr


def test_limits_in_the_repl(run) -> None:
    typed = ".limit memory 2GB\n.limit rounds 7\n.limit memory much\n.limit rows 0\n"
    out = " ".join(run("repl", input=typed).stdout.split())
    assert "10 seconds, after 1,000,000 rows or when it needs more than 2 GB" in out
    assert "after 7 rounds or when" in out
    assert out.count("`.limit` takes") == 2


# ------------------------------------------------------------------------- without columns


@pytest.fixture
def bare(write):
    write("u.csv", "holds\ntrue\n")
    write("ok.jsonl", '{"holds": true}\n')
    return write("bare.slog", BARE)


def test_answers_without_columns(run, bare) -> None:
    given = ("--engine", "local", bare, "--input", f"u={bare.parent / 'u.csv'}")
    out = run("run", *given).stdout
    assert "ok: 1 answer\nholds\n─────\ntrue\n" in out
    assert "no: no answers\n" in out
    lines = run("run", *given, "--format", "json").stdout.splitlines()
    assert {"predicate": "ok", "holds": True} in map(json.loads, lines)
    assert "ok,true\n" in run("run", *given, "--format", "csv").stdout
    assert run("test", bare).exit_code == 0


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_files_without_columns(run, bare, kind: str) -> None:
    ok, no = bare.parent / f"out.{kind}", bare.parent / f"no.{kind}"
    given = ("--engine", "local", bare, "--input")
    places = ("--output", f"ok={ok}", "--output", f"no={no}")
    assert run("run", *given, f"u={bare.parent / 'u.csv'}", *places).exit_code == 0
    if kind == "parquet":
        assert pq.read_table(ok).to_pydict() == {"holds": [True]}
        assert pq.read_table(no).to_pydict() == {"holds": []}
    else:
        head = "holds\n" * (kind == "csv")
        assert no.read_text() == head
        assert ok.read_text() == head + ("true\n" if kind == "csv" else '{"holds": true}\n')
    assert "p: 1 answer" in run("run", *given, f"u={ok}").stdout
    assert "p: no answers" in run("run", *given, f"u={no}").stdout


def test_false_is_rejected(run, bare, write) -> None:
    bad = write("bad.csv", "holds\nfalse\n")
    result = run("run", "--engine", "local", bare, "--input", f"u={bad}")
    assert "column `holds`: false is not a fact" in result.stderr
    assert "ok: no answers" in result.stdout


def test_an_expected_file_without_columns_is_rewritten(run, bare) -> None:
    (bare.parent / "ok.jsonl").write_text("")
    assert run("test", bare).exit_code == 1
    assert run("test", "--update", bare).exit_code == 0
    assert (bare.parent / "ok.jsonl").read_text() == '{"holds": true}\n'


def test_the_repl(run, bare) -> None:
    typed = f"table u().\nok() <- u().\n.load {bare.parent / 'u.csv'} u\n?ok().\n.facts ok\n"
    out = run("repl", input=typed).stdout
    assert "ok: 1 new answer\nholds\n─────\ntrue\n" in out
    assert "ok: 1 fact\nholds\n─────\ntrue\n" in out
