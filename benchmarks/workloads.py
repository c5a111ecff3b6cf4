"""The workloads: programs, and seeded data for them.

The data of a workload are CSV files in a folder, one for each input, in the order of their
timestamps unless the workload is about disorder.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path

from attrs import frozen

PROGRAMS = Path(__file__).parent / "programs"
START = datetime(2026, 11, 1, tzinfo=timezone.utc)

# Events; for graphs, nodes.
EVENTS = {"small": 20_000, "medium": 1_000_000, "large": 10_000_000}
NODES = {"small": 50, "medium": 200, "large": 1_000}


@frozen
class Workload:
    name: str
    sizes: dict[str, int]
    make: Callable[[Path, int], None]
    outputs: tuple[str, ...]

    @property
    def program(self) -> Path:
        return PROGRAMS / f"{self.name}.slog"


def _write(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


def _time(seconds: float) -> str:
    return (START + timedelta(seconds=int(seconds))).strftime("%Y-%m-%dT%H:%M:%SZ")


def messages(folder: Path, events: int) -> None:
    """A tenth as many codes as messages."""
    rng = random.Random(1)
    codes = events // 10
    rows = ((t, f"c{rng.randrange(codes)}") for t in range(events))
    _write(folder / "msg.csv", ("T", "code"), rows)


def alarms(folder: Path, events: int, disorder: float = 0) -> None:
    """Half of them pre-alarms; a hundredth as many areas as events."""
    rng = random.Random(2)
    rows: dict[str, list[tuple[float, float, str]]] = {"pre_alarm": [], "report": []}
    for number in range(events):
        at = number * 0.3
        name = rng.choice(("pre_alarm", "report"))
        area = f"a{rng.randrange(events // 100)}"
        # Times are whole seconds: one second less keeps rows within the slack.
        rows[name].append((at + rng.random() * max(disorder - 1, 0), at, area))
    for name, found in rows.items():
        found.sort()
        _write(folder / f"{name}.csv", ("T", "area"), ((_time(at), a) for _, at, a in found))


def disordered_alarms(folder: Path, events: int) -> None:
    alarms(folder, events, disorder=10)


def volumes(folder: Path, events: int) -> None:
    """Trades over 23 days for a million events; a two-hundredth as many stocks."""
    rng = random.Random(3)
    rows = (
        (_time(n * 2), n, f"s{rng.randrange(events // 200)}", rng.randrange(1, 1_000))
        for n in range(events)
    )
    _write(folder / "trade.csv", ("T", "id", "stock", "volume"), rows)


def prices(folder: Path, events: int) -> None:
    """Half of them trades, of a thousand stocks."""
    rng = random.Random(4)
    rows: dict[str, list[tuple[object, ...]]] = {"price": [], "trade": []}
    for at in range(events):
        stock = f"s{rng.randrange(1_000)}"
        if rng.random() < 0.5:
            rows["price"].append((at, stock, rng.randrange(10_000)))
        else:
            rows["trade"].append((at, stock))
    _write(folder / "price.csv", ("T", "stock", "price"), rows["price"])
    _write(folder / "trade.csv", ("T", "stock"), rows["trade"])


def clicks(folder: Path, events: int) -> None:
    """A hundredth as many users as clicks; one clicks every twenty minutes, more or less."""
    rng = random.Random(8)
    users = events // 100
    rows = ((_time(n * 1200 / users), n, f"u{rng.randrange(users)}") for n in range(events))
    _write(folder / "click.csv", ("T", "id", "user"), rows)


def payments(folder: Path, events: int) -> None:
    rng = random.Random(9)
    countries = ("de", "fr", "us", "xx")
    rows = (
        (_time(n), n, rng.randrange(1, 500_000) / 100, rng.choice(countries)) for n in range(events)
    )
    _write(folder / "payment.csv", ("T", "id", "euros", "country"), rows)


def orders(folder: Path, events: int) -> None:
    """Half of them orders and half visits, of fifty shops."""
    rng = random.Random(10)
    order, visit = [], []
    for n in range(events // 2):
        at, shop = _time(n // 5), f"s{rng.randrange(50)}"
        order.append((at, n, shop, rng.randrange(1, 1_000)))
        visit.append((at, shop if n % 3 else "s0", rng.randrange(100)))
    _write(folder / "order.csv", ("T", "id", "shop", "euros"), order)
    _write(folder / "visit.csv", ("T", "shop", "guests"), visit)


def _ring(nodes: int, seed: int) -> list[tuple[str, str]]:
    """A ring with half as many chords, in a random order."""
    rng = random.Random(seed)
    arcs = [(n, (n + 1) % nodes) for n in range(nodes)]
    arcs += [(rng.randrange(nodes), rng.randrange(nodes)) for _ in range(nodes // 2)]
    arcs = [(a, b) for a, b in dict.fromkeys(arcs) if a != b]
    rng.shuffle(arcs)
    return [(f"n{a}", f"n{b}") for a, b in arcs]


def arcs(folder: Path, nodes: int) -> None:
    rows = ((t, a, b) for t, (a, b) in enumerate(_ring(nodes, 5)))
    _write(folder / "arc.csv", ("T", "a", "b"), rows)


def lengths(folder: Path, nodes: int) -> None:
    rng = random.Random(6)
    rows = ((t, a, b, rng.randrange(1, 100)) for t, (a, b) in enumerate(_ring(nodes, 6)))
    _write(folder / "arc.csv", ("T", "a", "b", "d"), rows)


def network(folder: Path, nodes: int) -> None:
    """Three arcs a node."""
    rng = random.Random(7)
    pairs = {(rng.randrange(nodes), rng.randrange(nodes)) for _ in range(3 * nodes)}
    rows = [(f"n{a}", f"n{b}", rng.randrange(1, 100)) for a, b in sorted(pairs)]
    _write(folder / "arc.csv", ("a", "b", "d"), rows)


WORKLOADS = {
    w.name: w
    for w in (
        Workload("first", EVENTS, messages, ("first",)),
        Workload("pc_alarm", EVENTS, alarms, ("pc_alarm",)),
        Workload("pc_alarm_disordered", EVENTS, disordered_alarms, ("pc_alarm",)),
        Workload("week_sum", EVENTS, volumes, ("week",)),
        Workload("top", EVENTS, volumes, ("top",)),
        Workload("count_window", EVENTS, volumes, ("ten",)),
        Workload("sessions", EVENTS, clicks, ("session",)),
        Workload("risk", EVENTS, payments, ("risky",)),
        Workload("latest", EVENTS, prices, ("traded",)),
        Workload("layers", EVENTS, orders, ("busy", "quiet", "peak")),
        Workload("reach", NODES, arcs, ("reach",)),
        Workload("reach_linear", NODES, arcs, ("reach",)),
        Workload("minpath", NODES, lengths, ("minpath",)),
        Workload("minpath_final", NODES, network, ("dist",)),
    )
}
