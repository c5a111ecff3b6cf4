from reach import run  # noqa: F401
