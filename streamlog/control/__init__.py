"""Programs as managed things: upgrades in place, instances."""
