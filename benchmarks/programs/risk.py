"""What a payment risks, from 0 to 1: called once for each row, by every system."""

from __future__ import annotations

import math

WEIGHT = {"de": 0.4, "fr": 0.6, "us": 0.9}


def risk(euros: float, country: str) -> float:
    weight = WEIGHT.get(country, 1.5)
    return 1.0 - math.exp(-weight * euros / 1000.0)
