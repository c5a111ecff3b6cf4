"""Queries and kernels in one process: the only package that imports duckdb."""

from streamlog.duck.executor import DuckExecutor

__all__ = ["DuckExecutor"]
