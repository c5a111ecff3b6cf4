"""A package, so that `tests/` is on the path and `strategies` can be shared."""
