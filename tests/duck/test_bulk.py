"""Large files in DuckDB against the same files row by row: the same answers, figures, rejects and
late rows, to the byte where a file is sorted anyway."""

from __future__ import annotations

import gzip
import json
import math
from datetime import date, datetime, timezone
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from streamlog.app import run_local
from streamlog.app.cli import main
from streamlog.duck import bulk, lines, records
from streamlog.duck.database import OUT_OF_MEMORY, Database

PROGRAM = """
stream s(T: time, area: string, n: int 0..1000, x: float, d: duration, b: bool) slack 10s.
stream r(T: time, area: string).
table near(area: string, other: string).
output o, unanswered, wide.
o(T, A, N, B) <- s(T, A, N, X, _, B), X > -5.0.
unanswered(T, A) <- s(T, A, _, _, _, _), not (r(T1, A), T <= T1, T1 <= T + 5min).
wide(T, A2, X, D) <- s(T, A, _, X, D, _), near(A, A2).
near(a, "b,c").
near(b, "x").
"""
LOCAL = ["run", "p.slog", "--engine", "local"]
FIRST = "2026-11-15T08:00:00Z,a,5,0.5,300,true"


@pytest.fixture
def seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each run was done in DuckDB. Every file is large."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run_local, "LARGE", 0)
    found: list[bool] = []
    load = bulk.load

    def watched(*args, **kwargs):
        result = load(*args, **kwargs)
        found.append(result is not None)
        return result

    monkeypatch.setattr(bulk, "load", watched)
    return found


def run(name: str, *args: str, program: str = PROGRAM) -> dict[str, object]:
    """What a run leaves behind."""
    Path("p.slog").write_text(program)
    outputs = [o.strip(" .") for o in program.split("output ")[1].split("\n")[0].split(",")]
    given = [f"--output={o}={name}_{o}.csv" for o in outputs]
    given += [f"--rejects={name}_rejects.csv", f"--late={name}_late.csv"]
    result = CliRunner().invoke(main, ["run", "p.slog", "--engine", "local", *given, *args])
    assert result.exit_code == 0, result.output
    files = {
        o: sorted(Path(f"{name}_{o}.csv").read_text().splitlines())
        for o in [*outputs, "rejects", "late"]
    }
    return {**files, "figures": said(result.stderr)}


def said(text: str) -> list[str]:
    """What a run says: the first few bad rows of several files, in whatever order."""
    return sorted(text.split("state:")[0].split("time went into")[0].splitlines())


def both(*args: str, program: str = PROGRAM) -> dict[str, object]:
    by_rows = run("rows", *args, "--strategy", "kernel", program=program)
    assert run("bulk", *args, program=program) == by_rows
    return by_rows


def time(second: int) -> str:
    return f"2026-11-15T{8 + second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"


def write(name: str, header: str, lines: list[str]) -> None:
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_text("\n".join([header, *lines]) + "\n")


def random_lines(rng: Random, disorder: int) -> tuple[list[str], list[str]]:
    areas = ["a", "b", "Zürich", "it's", " x ", "🚀", "$low", ""]

    def line(second: int) -> str:
        number = rng.choice([rng.uniform(-9, 9), 1e-7, 5.0, -0.25])
        return (
            f"{time(second)},{rng.choice(areas)},{rng.randint(0, 1000)},{number!r},"
            f"{rng.randint(-5, 5)},{rng.choice(['true', 'false'])}"
        )

    s = [line(i + rng.randint(0, disorder)) for i in range(0, 900, 3) for _ in range(2)]
    s += rng.sample(s[-4:], 2)
    r = [f"{time(i)},{rng.choice(areas[:-1])}" for i in range(0, 1200, 7)]
    return s, r


@pytest.mark.parametrize("disorder", [0, 7])
@pytest.mark.parametrize("seed", range(3))
def test_clean_files(seen: list[bool], seed: int, disorder: int) -> None:
    s, r = random_lines(Random(seed), disorder)
    write("s.csv", "T,area,n,x,d,b", s)
    write("r.csv", "area,T,more", [",".join([*reversed(line.split(",")), "-"]) for line in r])
    found = both("--input", "s=s.csv", "--input", "r=r.csv")
    assert seen == [True]
    assert len(found["o"]) > 300
    assert len(found["unanswered"]) > 20


def test_folders_are_merged(seen: list[bool]) -> None:
    """Late is what is late among all files of a stream."""
    rng = Random(5)
    s, r = random_lines(rng, 5)
    for part in range(3):
        write(f"s/{part}.csv", "T,area,n,x,d,b", [x for i, x in enumerate(s) if i % 3 == part])
    write("r.csv", "T,area", r)
    both("--input", "s=s", "--input", "r=r.csv")
    assert seen == [True]
    write("s/9.csv", "T,area,n,x,d,b", [s[400], s[0], s[401]])
    found = both("--input", "s=s", "--input", "r=r.csv")
    assert seen == [True, True]
    assert len(found["late"]) == 2


def test_whether_rows_are_late_is_known(seen: list[bool]) -> None:
    """With files whose rows are late by a little, or just not, however they are merged."""
    late = []
    for seed in range(12):
        rng = Random(seed)
        s, r = random_lines(rng, rng.choice([9, 11, 13]))
        cuts = [rng.randrange(3) if rng.random() < 0.3 else i * 3 // len(s) for i in range(len(s))]
        for part in range(3):
            lines = [x for x, cut in zip(s, cuts, strict=True) if cut == part]
            write(f"s/{part}.csv", "T,area,n,x,d,b", lines)
        write("r.csv", "T,area", r)
        found = both("--input", "s=s", "--input", "r=r.csv")
        late.append(len(found["late"]) - 1)
    assert all(seen)
    assert 2 <= late.count(0) <= 10


DOUBTFUL = [
    " 2026-11-15 08:00 ,a,+5,.5,1.5min,YES",
    "2026-11-15T08:00:00.25+02:00,a,5,0.5,0,true",
    '2026-11-15T08:00:00Z,"a, b",5,0.5,0,true',
    "2026-11-15T08:00:00Z,a\rb,5,0.5,0,true",
    "2026-11-15T08:00:00Z,a,5,0.5,0,true\r",
    "2026-11-15T08:00:00Z,a\0,5,0.5,0,true",
    "",
    "T,area,n,x,d,b",
    "soon,a,5,0.5,0,true",
    "2026-11-5T08:00:00Z ,a,5,0.5,0,true",
    " 2026-11-5T08:00:00Z,a,5,0.5,0,true",
    "2026-02-30T08:00:00Z,a,5,0.5,0,true",
    "2026-11-15T08:00:60Z,a,5,0.5,0,true",
    "2026-11-15T24:00:00Z,a,5,0.5,0,true",
    "0000-11-15T08:00:00Z,a,5,0.5,0,true",
    "253402300800000000,a,5,0.5,0,true",
    "2026-11-15T08:00:00Z,a,5.0,0.5,0,true",
    "2026-11-15T08:00:00Z,a,1e2,0.5,0,true",
    "2026-11-15T08:00:00Z,a,,0.5,0,true",
    "2026-11-15T08:00:00Z,a,1001,0.5,0,true",
    "2026-11-15T08:00:00Z,a,9223372036854775808,0.5,0,true",
    "2026-11-15T08:00:00Z,a,５,0.5,0,true",
    "2026-11-15T08:00:00Z,a,5,nan,0,true",
    "2026-11-15T08:00:00Z,a,5,inf,0,true",
    "2026-11-15T08:00:00Z,a,5,1e999,0,true",
    "2026-11-15T08:00:00Z,a,5,0.5,5min,true",
    "2026-11-15T08:00:00Z,a,5,0.5,0,1",
    "2026-11-15T08:00:00Z,a,5,0.5,0",
    "2026-11-15T08:00:00Z,a,5,0.5,0,true,",
    "2026-11-15T08:00:00Z,a,5,0.5,0,true,more",
    "2026-11-15T08:00:00Z,\udcff,5,0.5,0,true",
    "2026-11-15T07:59:00Z,a,5,0.5,0,true",
]


@pytest.mark.parametrize("line", DOUBTFUL)
def test_a_doubtful_row_is_for_the_checker(seen: list[bool], line: str) -> None:
    text = "\n".join(["T,area,n,x,d,b", FIRST, FIRST.replace(",a,", ",b,"), line, FIRST, ""])
    Path("s.csv").write_bytes(text.encode(errors="surrogateescape"))
    both("--input", "s=s.csv", "--empty", "r")
    assert seen == [True]


def test_a_quote_that_is_open_takes_the_lines_that_follow(seen: list[bool]) -> None:
    """Some of which look like rows; a quote that is never closed takes none."""
    quoted = FIRST.replace(",a,", ',"a\n' + FIRST + '\n,b"",\n",')
    never = [FIRST.replace(",a,", f',"{name},') for name in ("n", "m")]
    some = [FIRST.replace(",a,", f",{name},") for name in "cdefgh"]
    rows = [*some[:2], quoted, some[2], never[0], some[3], quoted + "x", *some[4:], never[1]]
    write("s.csv", '"T",area,n,x,d,b', rows)
    found = both("--input", "s=s.csv", "--empty", "r")
    assert seen == [True]
    assert 9 <= len(found["o"]) <= 12
    assert len(found["rejects"]) >= 4


def test_a_header_of_several_lines(seen: list[bool]) -> None:
    write("s.csv", 'T,area,n,x,d,b,"more\nlines"', [f"{FIRST},-"])
    assert len(both("--input", "s=s.csv", "--empty", "r")["o"]) == 2
    write("s.csv", "T,area,n", [FIRST])
    result = CliRunner().invoke(main, [*LOCAL, "--input", "s=s.csv", "--empty", "r"])
    assert "has no column `x`" in result.stderr
    assert seen == [False, False]


def test_lines_come_in_their_order(seen: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """Also from many blocks, with threads: the numbers of lines show it."""
    monkeypatch.setattr(lines, "_BLOCK", 1 << 12)
    rows = [f"{n},{'x' if n % 97 == 0 else n}" for n in range(20_000)]
    program = "stream s(T: int, n: int).\noutput p.\np(T, N) <- s(T, N).\n"
    write("s.csv", "T,n", rows)
    found = both("--input", "s=s.csv", program=program)
    assert len(found["rejects"]) == 1 + 20_000 // 97 + 1
    assert seen == [True]


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n\n"])
@pytest.mark.parametrize("size", [5, 7, 64])
def test_blocks_and_ends(
    seen: list[bool], monkeypatch: pytest.MonkeyPatch, end: str, size: int
) -> None:
    monkeypatch.setattr(lines, "_BLOCK", size)
    text = "\r\n".join(["\ufeffT,area,n,x,d,b", FIRST, FIRST.replace(",a,", ",é,")]) + end
    Path("s.csv").write_bytes(text.encode())
    assert len(both("--input", "s=s.csv", "--empty", "r")["o"]) == 3
    with gzip.open("s.csv.gz", "wb") as file:
        file.write(text.encode())
    assert len(both("--input", "s=s.csv.gz", "--empty", "r")["o"]) == 3
    Path("s.csv.gz").write_bytes(Path("s.csv.gz").read_bytes()[:-9])
    result = CliRunner().invoke(main, [*LOCAL, "--input", "s=s.csv.gz", "--empty", "r"])
    assert "end too early" in result.stderr
    assert seen[:2] == [True, True]


CERTAIN = [
    "1794729600000000,a,6,0.5,0,true",
    "2026-11-15T08:00:00.25Z,a,5,1e-3,-12,false",
    "2026-11-15T08:00:00Z,'a' \\ #1 😀 NULL,0,-4,0,true",
    "2026-11-15T08:00:00Z,,1000,0,0,true",
]


@pytest.mark.parametrize("line", CERTAIN)
def test_a_row_that_is_certain(seen: list[bool], line: str) -> None:
    write("s.csv", "T,area,n,x,d,b", [FIRST, line])
    found = both("--input", "s=s.csv", "--empty", "r")
    assert seen == [True]
    assert len(found["o"]) == 3


@pytest.mark.parametrize(
    "changed",
    [
        ("slack 10s", "slack 10s idle 1min"),
        ("slack 10s", "slack 10s horizon 1d"),
        ('near(b, "x").', f"r(@{time(0)}, a)."),
    ],
    ids=lambda changed: changed[1],
)
def test_what_only_rows_can_do(seen: list[bool], changed: tuple[str, str]) -> None:
    write("s.csv", "T,area,n,x,d,b", [FIRST, FIRST])
    write("r.csv", "T,area", [f"{time(3)},b"])
    both("--input", "s=s.csv", "--input", "r=r.csv", program=PROGRAM.replace(*changed))
    assert seen == [False]


VALUES = {
    "T": [
        f'"{time(0)}"',
        "1794729600000000",
        '"1794729600000000"',
        '" 2026-11-15 08:00"',
        "5",
        "null",
    ],
    "area": ['"a"', '"é\\n\\"q"', '"\\u0041"', '"\\u0000"', '"\\ud800"', "5", '"\\ud83d\\ude00"'],
    "n": ["5", "-0", "5.0", "1e2", '"5"', "true", "1001", "123456789012345678901", "05"],
    "x": [
        "0.5",
        "5",
        "-0",
        "1e3",
        "NaN",
        "Infinity",
        "-inf",
        "1e999",
        "12345678901234567890123",
        ".5",
    ],
    "d": ["300", '"5min"', "0.5", "[]", "{}"],
    "b": ["true", "false", '"yes"', "1", "null"],
}
WHOLE = [
    "",
    "  ",
    "{}",
    "[]",
    "5",
    '["2026-11-15T08:00:00Z", "a", 5, 0.5, 300, true]',
    '{"T": "2026-11-15T08:00:00Z", "area": "a", "n": 5, "x": 0.5, "d": 300, "b": true',
    '{"T": "2026-11-15T08:00:00Z", "area": "a", "n": 5, "x": 0.5, "d": 300, "b": true,}',
    '{"T": "2026-11-15T08:00:00Z", "area": "a", "n": 5, "n": 6, "x": 0.5, "d": 300, "b": true}',
    '{"t": "2026-11-15T08:00:00Z", "Area": "a", "n": 5, "N": 6, "x": 0.5, "d": 300, "b": true}',
    '{"T": "2026-11-15T08:00:00Z", "area": "a", "n": 5, "x": 0.5, "d": 300, "b": true, "z": nan}',
    '{"T": "2026-11-15T08:00:00Z", "area": "a", "n": 5, "x": 0.5, "d": 300, "b": true, "z": '
    + "[" * 3_000
    + "]" * 3_000
    + "}",
    '\0{"T": "2026-11-15T08:00:00Z"}',
    '{"T": "2026-11-15T08:00:00Z", "area": "a\tb", "n": 5, "x": 0.5, "d": 300, "b": true}\r',
    '{"T": "2026-11-15T08:00:00Z", "area": "\udcff", "n": 5, "x": 0.5, "d": 300, "b": true}',
    '{"T": "2026-11-15T08:00:00Z", "area": "no end',
]


@pytest.mark.parametrize("ending", ["\n", ""])
def test_json_lines(seen: list[bool], ending: str) -> None:
    first = {name: values[0] for name, values in VALUES.items()}
    records = [{**first, name: v} for name, values in VALUES.items() for v in values]
    some = ["{" + ", ".join(f'"{k}": {v}' for k, v in r.items()) + "}" for r in records]
    text = "\n".join([*some, *WHOLE]) + ending
    Path("s.jsonl").write_bytes(text.encode(errors="surrogateescape"))
    found = both("--input", "s=s.jsonl", "--empty", "r")
    assert seen == [True]
    assert len(found["o"]) >= 10
    assert len(found["rejects"]) > 25


def test_json_in_json(seen: list[bool]) -> None:
    program = 'stream s(T: int, user: string at "meta.user", n: int at "a/b~.`c d`").\n'
    program += "output p.\np(T, U, N) <- s(T, U, N).\n"
    Path("s.jsonl").write_text(
        '{"T": 1, "meta": {"user": "u"}, "a/b~": {"c d": 5}}\n'
        '{"T": 1, "meta": {"user": "u", "user": "v"}, "a/b~": {"c d": 5}}\n'
        '{"T": 1, "meta": {"user": "w"}, "meta": {"user": "x"}, "a/b~": {"c d": 5}}\n'
        '{"T": 1, "meta": [{"user": "w"}], "a/b~": {"c d": 5}}\n'
        '{"T": 1, "meta": {"user": "y"}, "a/b~": 5}\n'
    )
    found = both("--input", "s=s.jsonl", program=program)
    assert seen == [True]
    assert found["p"] == ["1,u,5", "1,v,5", "1,x,5", "T,U,N"]
    assert len(found["rejects"]) == 3


PARQUET: dict[str, list[tuple[pa.DataType, object]]] = {
    "T": [
        (pa.timestamp("us", "UTC"), datetime(2026, 11, 15, 8, tzinfo=timezone.utc)),
        (pa.timestamp("ms"), datetime(2026, 11, 15, 8)),
        (pa.timestamp("us"), datetime(1, 1, 1)),
        (pa.int64(), 1794729600000000),
        (pa.int64(), 5),
        (pa.string(), time(0)),
        (pa.timestamp("ns"), datetime(2026, 11, 15, 8)),
        (pa.date32(), date(2026, 11, 15)),
        (pa.int64(), None),
    ],
    "area": [(pa.string(), "a"), (pa.string(), "\0é"), (pa.binary(), b"a"), (pa.string(), None)],
    "n": [(pa.int64(), 5), (pa.uint16(), 1000), (pa.int8(), -1), (pa.float64(), 5.0)],
    "x": [
        (pa.float32(), 0.1),
        (pa.float64(), math.nan),
        (pa.float64(), -9.5),
        (pa.int64(), 2**53 + 1),
    ],
    "d": [(pa.int64(), 300), (pa.duration("s"), 5), (pa.float64(), 0.5)],
    "b": [(pa.bool_(), True), (pa.int64(), 1), (pa.bool_(), None)],
}


def test_parquet(seen: list[bool]) -> None:
    first = {name: values[0] for name, values in PARQUET.items()}
    for name, values in PARQUET.items():
        for kind, value in values:
            chosen = {**first, name: (kind, value)}
            columns = {
                n: pa.array([first[n][1] if type_ == first[n][0] else v, v], type_)
                for n, (type_, v) in chosen.items()
            }
            pq.write_table(pa.table(columns), "s.parquet")
            both("--input", "s=s.parquet", "--empty", "r")
    assert seen.count(True) > 15


def test_bad_rows_of_parquet(seen: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_AT_ONCE", 3)
    numbers = [None if n % 7 == 0 else n for n in range(100)]
    table = pa.table(
        {"n": numbers, "t": range(100), "T": [n - n % 30 // 29 * 5 for n in range(100)]}
    )
    pq.write_table(table, "s.parquet", row_group_size=10)
    program = "stream s(T: int, n: int 0..90).\noutput p.\np(T, N) <- s(T, N).\n"
    found = both("--input", "s=s.parquet", program=program)
    assert seen == [True]
    assert len(found["rejects"]) == 1 + 15 + 7
    assert len(found["late"]) == 1 + 3


def test_strict_stops_before_answers(seen: list[bool]) -> None:
    Path("p.slog").write_text(PROGRAM)
    write("s.csv", "T,area,n,x,d,b", [FIRST, "soon"])
    args = [
        *LOCAL,
        "--strict",
        "--input",
        "s=s.csv",
        "--empty",
        "r",
        "--output",
        "o=o.csv",
        "--rejects",
        "r.csv",
    ]
    told = [CliRunner().invoke(main, [*args, *more]) for more in ([], ["--strategy=kernel"])]
    assert told[0].exit_code == told[1].exit_code == 1
    assert told[0].stdout == told[1].stdout
    assert told[0].stderr.splitlines()[0] == told[1].stderr.splitlines()[0]
    assert not Path("o.csv").exists()
    assert Path("r.csv").exists()
    assert seen == [True]


def test_other_kinds_of_files_and_of_output(seen: list[bool]) -> None:
    names = ["T", "area", "n", "x", "d", "b"]
    row = [time(0), "a", 5, 0.5, 300, True]
    Path("s.jsonl").write_text(json.dumps(dict(zip(names, row, strict=True))) + "\n")
    both("--input", "s=s.jsonl", "--empty", "r")
    assert seen == [True]
    write("s.csv", ",".join(names), [FIRST, FIRST.replace(",a,", ",b,")])
    for form in ("json", "csv", "table"):
        args = ["run", "p.slog", "--engine", "local", "--input", "s=s.csv", "--empty", "r"]
        args += ["--format", form]
        texts = [
            CliRunner().invoke(main, [*args, *more]).stdout for more in ([], ["--strategy=kernel"])
        ]
        assert texts[0] == texts[1]
        assert texts[0]
    assert seen[1:] == [True] * 3


def test_an_error_leaves_outputs_alone(seen: list[bool]) -> None:
    program = "stream s(T: int, n: int).\noutput p.\np(T, 10 // N) <- s(T, N).\n"
    Path("p.slog").write_text(program)
    write("s.csv", "T,n", ["1,5", "2,0"])
    Path("p.csv").write_text("before")
    args = ["run", "p.slog", "--engine", "local", "--input", "s=s.csv", "--output", "p=p.csv"]
    told = [CliRunner().invoke(main, [*args, *more]) for more in ([], ["--strategy", "kernel"])]
    assert told[0].exit_code == told[1].exit_code == 1
    assert told[0].stderr == told[1].stderr
    assert "division by zero in the rule at p.slog:3" in told[0].stderr
    assert Path("p.csv").read_text() == "before"


def test_options_are_not_ignored(seen: list[bool]) -> None:
    write("s.csv", "T,area,n,x,d,b", [FIRST])
    run("a", "--input", "s=s.csv", "--empty", "r", "--every", "5")
    run("a", "--input", "s=s.csv", "--empty", "r", "--no-header")
    assert seen == [True]  # not even tried with --every
    args = ["run", "p.slog", "--engine", "local", "--strategy", "fixpoint"]
    result = CliRunner().invoke(main, args)
    assert result.exit_code == 2
    assert "--strategy fixpoint is for --engine spark" in result.stderr


RELATED = """
stream s(end: time, begin: time, n: int) where begin <= end, end <= begin + 1h.
output p.
p(T, B, N) <- s(T, B, N).
"""


def test_relations_between_columns(seen: list[bool]) -> None:
    good = [f"{time(60)},{time(0)},1", f"{time(3660)},{time(60)},2"]
    write("s.csv", "end,begin,n", good)
    assert len(both("--input", "s=s.csv", program=RELATED)["p"]) == 3
    write("s.csv", "end,begin,n", [*good, f"{time(3661)},{time(60)},3"])
    assert len(both("--input", "s=s.csv", program=RELATED)["rejects"]) == 2
    assert seen == [True, True]


def test_ints_far_apart(seen: list[bool]) -> None:
    program = "stream s(T: int, n: int) where T <= n + 5.\noutput p.\np(T, N) <- s(T, N).\n"
    write("s.csv", "T,n", [f"1,{2**63 - 1}", "2,9"])
    assert len(both("--input", "s=s.csv", program=program)["p"]) == 3
    write("s.csv", "T,n", [f"1,{-(2**63)}"])
    assert len(both("--input", "s=s.csv", program=program)["rejects"]) == 2
    assert seen == [True, True]


def test_numbers_of_another_unit(seen: list[bool]) -> None:
    """Seconds are not taken for microseconds, and of what looks like them there is a warning."""
    program = "stream s(T: time(s), n: int).\noutput p.\np(T, N) <- s(T, N).\n"
    write("s.csv", "T,n", ["1794729600,1"])
    assert "2026-11-15T08:00:00Z,1" in both("--input", "s=s.csv", program=program)["p"]
    program = program.replace("time(s)", "time")
    found = both("--input", "s=s.csv", program=program)
    assert "warning" in str(found["figures"])
    write("s.csv", "T,n", ["1794729600000000,1"])
    assert "warning" not in str(both("--input", "s=s.csv", program=program)["figures"])
    assert seen == [False, True, True]


def test_a_profile_is_of_rules(seen: list[bool]) -> None:
    write("s.csv", "end,begin,n", [f"{time(60)},{time(0)},1"])
    run("a", "--input", "s=s.csv", "--profile", program=RELATED)
    assert seen == []


def test_values_that_are_missing(seen: list[bool]) -> None:
    program = "stream s(T: int, a: string).\ntable t(a: string, b: string?).\noutput p.\n"
    program += "p(T, B) <- s(T, A), t(A, B).\n"
    write("s.csv", "T,a", ["1,x", "2,y"])
    write("t.csv", "a,b", ["x,", "y,z"])
    found = both("--input", "s=s.csv", "--input", "t=t.csv", program=program)
    assert seen == [True]
    assert found["p"] == ["1,", "2,z", "T,B"]


STEPWISE = """
stream s(T: time, area: string, n: int 0..1000, x: float, d: duration, b: bool) slack 10s.
stream r(T: time, area: string).
table near(area: string, other: string).
output higher, linked, again, tick_of.
higher(T, A, N) <- s(T, A, N, _, _, _), not (higher(T1, A, N1), T1 < T, N1 >= N).
linked(T, A, A) <- r(T, A).
linked(T, A, B) <- linked(T, A, C), near(C, B).
again(T + 1s, A) <- r(T, A).
again(T + 1s, A) <- again(T, A), not (r(T1, A), T <= T1, T1 <= T + 20s).
tick_of(T) <- tick(T), matches("a", "a").
near(a, "b,c").
near("b,c", a).
"""


@pytest.mark.parametrize("disorder", [0, 7, 30])
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_kernels_are_handed_rows_in_the_order_of_time(
    seen: list[bool], monkeypatch: pytest.MonkeyPatch, disorder: int, size: int
) -> None:
    slices = bulk.Bulk.slices
    monkeypatch.setattr(bulk.Bulk, "slices", lambda found, _: slices(found, size))
    s, r = random_lines(Random(disorder), disorder)
    for part in range(2):
        write(f"s/{part}.csv", "T,area,n,x,d,b", s[part::2])
    write("r.csv", "T,area", [*r, "soon,a"])
    found = both("--input", "s=s", "--input", "r=r.csv", program=STEPWISE)
    assert seen == [True]
    assert len(found["again"]) > 50
    assert len(found["higher"]) > 10
    assert (len(found["late"]) > 1) is (disorder > 10)


def test_without_enough_memory_rows_come_one_by_one(
    seen: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stored(*_: object) -> None:
        raise OUT_OF_MEMORY("no more")

    monkeypatch.setattr(Database, "stored", stored)
    write("s.csv", "T,area,n,x,d,b", [FIRST])
    assert len(both("--input", "s=s.csv", "--empty", "r")["o"]) == 2
    assert seen == [False]


def test_python_functions_over_each_row(seen: list[bool]) -> None:
    Path("risk.py").write_text("def risk(n: int, x: float) -> float:\n    return n * x\n")
    write(
        "s.csv",
        "T,area,n,x,d,b",
        [f"{time(i)},a{i % 3},{i % 7},{i / 8},300,true" for i in range(99)],
    )
    program = PROGRAM.split("output")[0] + (
        'function risk(int, float): float from "risk.py".\n'
        "output o, high.\n"
        "o(T, A, risk(N, X)) <- s(T, A, N, X, _, _), risk(N, X) > 1.0.\n"
        "high(floor(T, 1min), A, max(R)) <- o(T, A, R).\n"
    )
    args = ("--allow-python", "--input", "s=s.csv")
    assert len(both(*args, program=program)["o"]) > 50
    assert seen == [True]


STATES = """
stream start(T: time, area: string) slack 10s.
stream stop(T: time, area: string).
state burning(A) since start(_, A) until stop(_, A).
state calm(A) since stop(_, A) until start(_, A) for at most 1min.
output burning, calm, spread.
spread(T, A, B) <- start(T, A), burning(B) at T, A != B.
"""
STEPWISE_STATES = STATES.replace("burning, ", "burning, again, ") + (
    "again(T, A) <- burning(A) from S to T.\n"
    "again(T + 1s, A) <- again(T, A), not (start(T1, A), T <= T1, T1 <= T + 10s).\n"
)


@pytest.mark.parametrize("program", [STATES, STEPWISE_STATES], ids=["queries", "kernel"])
@pytest.mark.parametrize("seed", range(3))
def test_states(seen: list[bool], monkeypatch: pytest.MonkeyPatch, program: str, seed: int) -> None:
    slices = bulk.Bulk.slices
    handed_over = []

    def watched(found: bulk.Bulk, _: int):
        for part in slices(found, 20):
            handed_over.append(part)
            yield part

    monkeypatch.setattr(bulk.Bulk, "slices", watched)
    rng = Random(seed)
    for name in ("start", "stop"):
        times = (i * 5 + rng.randint(0, 12) for i in range(120))
        lines = [f"{time(second)},{rng.choice('abc')}" for second in times]
        write(f"{name}.csv", "T,area", [*lines, lines[-1], "soon,a"])
    found = both("--input", "start=start.csv", "--input", "stop=stop.csv", program=program)
    assert seen == [True]
    assert (len(handed_over) > 5) is (program == STEPWISE_STATES)
    assert all(len(found[output]) > 10 for output in ("burning", "calm", "spread"))
    assert len(found["late"]) > 1
