"""Pipelines to Python, run in this process."""

from streamlog.kernel.step import Kernel

__all__ = ["Kernel"]
