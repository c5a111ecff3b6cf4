"""Ten thousand malformed rows of every kind: all are rejected, with reasons, and no good one is."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from streaming import compiled

from streamlog.kernel import Kernel
from streamlog.runtime.engine import Engine
from streamlog.runtime.sources import Input, read

PROGRAM = """
stream s(T: time, area: string, n: int 0..1000, x: float) slack 1h horizon 1d.
output big, silent.
big(T, A, N) <- s(T, A, N, _), N > 500.
silent(T, A) <- s(T, A, _, _), not (s(T1, A, _, _), T < T1, T1 <= T + 1min).
"""
START = 1794729600000000
MALFORMED = 10_000


def good_rows(count: int, rng: random.Random) -> list[tuple[int, str, int, float]]:
    return [
        (START + i * 10**6, f"gate{rng.randrange(20)}", rng.randrange(1001), rng.random())
        for i in range(count)
    ]


def bad_csv(rng: random.Random) -> bytes:
    t = START
    kinds = [
        b"%d,gate1,5" % t,  # wrong arity
        b"%d,gate1,5,0.5,extra" % t,
        b"just words",
        b"%d,gate1,five,0.5" % t,  # wrong type
        b"%d,gate1,5.0,0.5" % t,
        b"%d,gate1,5,half" % t,
        b"noon,gate1,5,0.5",
        b",gate1,5,0.5",  # null
        b"%d,gate1,,0.5" % t,
        b"%d,gate1,5," % t,
        b"%d,gate1,9223372036854775808,0.5" % t,  # overflow
        b"%d,gate1,-%s,0.5" % (t, b"9" * rng.randrange(20, 5000)),
        b"%d,gate1,5,1e999" % t,
        b"%d,gate1,5,nan" % t,
        b"%d,\xff\xfe%d,5,0.5" % (t, rng.randrange(100)),  # bad UTF-8
        b"%d,\xc3,5,0.5" % t,
        b"\x80%d,gate1,5,0.5" % t,
        b"9999999999999999999,gate1,5,0.5",  # absurd timestamps
        b"2026-13-45T99:99:99Z,gate1,5,0.5",
        b"0000-00-00,gate1,5,0.5",
        b"9998-01-01T00:00:00Z,gate1,5,0.5",  # a time there is, beyond the horizon
        b"%d,gate1,1001,0.5" % t,  # outside the declared range
        b"%d,gate1,-1,0.5" % t,
        b'%d,"gate1,5,0.5' % t,  # an open quote
        b'%d,"gate"1,5,0.5' % t,
    ]
    return rng.choice(kinds)


def bad_json(rng: random.Random) -> bytes:
    row: dict[str, object] = {"T": START, "area": "gate1", "n": 5, "x": 0.5}
    kinds = [
        b"{",
        b"[1, 2",
        b"null",
        b"17",
        b'"a text"',
        b"[]",
        b"[" * rng.randrange(1, 5000),
        b'{"T": %d, "area": "\xff", "n": 5, "x": 0.5}' % START,
        b'{"T": %d, "area": "\\udc80", "n": 5, "x": 0.5}' % START,
        b'{"T": %d, "area": "gate1", "n": 5, "x": NaN}' % START,
        b'{"T": %d, "area": "gate1", "n": 5, "x": -Infinity}' % START,
    ]
    changes: list[tuple[str, object]] = [
        ("T", None),
        ("T", "noon"),
        ("T", 1.5),
        ("T", True),
        ("T", 10**30),
        ("T", "9998-01-01"),
        ("area", None),
        ("area", 5),
        ("area", ["gate1"]),
        ("n", None),
        ("n", 5.0),
        ("n", "5.0"),
        ("n", 2**63),
        ("n", {}),
        ("n", True),
        ("n", 1001),
        ("x", None),
        ("x", "half"),
        ("x", True),
        ("x", []),
    ]
    name, value = rng.choice(changes)
    gone = {k: v for k, v in row.items() if k != name}
    kinds += [json.dumps({**row, name: value}).encode()] * 10 + [json.dumps(gone).encode()]
    return rng.choice(kinds)


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_malformed_rows_end_in_rejects(tmp_path: Path, kind: str) -> None:
    rng = random.Random(11)
    good = good_rows(2_000, rng)
    lines: list[bytes] = []
    for row in good:
        if kind == "csv":
            lines.append(",".join(map(str, row)).encode())
        else:
            lines.append(json.dumps(dict(zip(("T", "area", "n", "x"), row, strict=True))).encode())
    make = bad_csv if kind == "csv" else bad_json
    # Behind the first row, so that there is a time to be absurd against.
    for place in sorted(rng.choices(range(1, len(lines) + 1), k=MALFORMED), reverse=True):
        lines.insert(place, make(rng))
    header = [b"T,area,n,x"] if kind == "csv" else []
    path = tmp_path / f"rows.{kind}"
    path.write_bytes(b"\n".join(header + lines) + b"\n")

    engine = Engine(compiled(PROGRAM), Kernel)
    engine.push("s", read(Input("s", path), engine.checkers["s"]))
    engine.end()
    answers = engine.step()

    assert len(engine.rejects) == MALFORMED
    assert all(reject.reason and reject.reason.isprintable() for reject in engine.rejects)
    placed = [r for r in engine.rejects if "horizon" not in r.reason]
    assert all(reject.where.startswith(f"{path}:") for reject in placed)
    assert len({reject.reason for reject in engine.rejects}) > 20
    assert engine.late == []
    assert engine.facts("s") == sorted(good)

    alone = Engine(compiled(PROGRAM), Kernel)
    alone.push("s", good)
    alone.end()
    assert alone.step() == answers
    assert answers["big"]
    assert answers["silent"]
