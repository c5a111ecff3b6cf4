"""What streamlog wants to be, as ratios to others in one run, and what it was before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

LOCAL, SPARK = "streamlog_local", "streamlog_spark"


@frozen
class Goal:
    workload: str
    system: str
    peers: Sequence[str]  # the fastest of these is the measure
    most: float
    before: float | None  # None: it was not measured

    def reached(self, seconds: Mapping[str, float]) -> float | None:
        """The ratio in a run; None: it has not both."""
        peers = [seconds[peer] for peer in self.peers if peer in seconds]
        if self.system not in seconds or not peers:
            return None
        return seconds[self.system] / min(peers)


_DUCKDB, _HAND = ("duckdb",), ("pyspark",)

GOALS = (
    Goal("first", LOCAL, _DUCKDB, 1.3, 24),
    Goal("pc_alarm", LOCAL, _DUCKDB, 1.3, 48),
    Goal("pc_alarm_disordered", LOCAL, _DUCKDB, 1.3, 57),
    Goal("week_sum", LOCAL, _DUCKDB, 1.3, 20),
    Goal("latest", LOCAL, ("duckdb", "polars"), 1.5, None),
    Goal("count_window", LOCAL, ("duckdb", "polars"), 1.5, None),
    Goal("layers", LOCAL, _DUCKDB, 1.3, None),
    Goal("reach", LOCAL, ("python",), 3, 200),
    Goal("reach_linear", LOCAL, ("python",), 3, 19),
    Goal("minpath", LOCAL, ("python",), 3, 275),
    Goal("minpath_final", LOCAL, ("python",), 3, 52),
    Goal("first", SPARK, _HAND, 1.15, 1.5),
    Goal("pc_alarm", SPARK, _HAND, 1.15, 1.5),
    Goal("pc_alarm_disordered", SPARK, _HAND, 1.15, 1.4),
    Goal("week_sum", SPARK, _HAND, 1.15, 3.9),
    Goal("latest", SPARK, _HAND, 1.3, 2.0),
    Goal("count_window", SPARK, _HAND, 1.3, None),
)


def table(seconds: Mapping[str, Mapping[str, float]]) -> str:
    """`seconds` by workload and system."""
    lines = ["| workload | system | compared with | goal | before | now |", "|---" * 6 + "|"]
    for goal in GOALS:
        now = goal.reached(seconds.get(goal.workload, {}))
        before = "–" if goal.before is None else f"{goal.before:g}×"
        found = "–" if now is None else f"{now:.1f}×{'' if now <= goal.most else ', missed'}"
        peers = " or ".join(goal.peers)
        cells = (goal.workload, goal.system, peers, f"{goal.most:g}×", before, found)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
