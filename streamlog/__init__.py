"""streamlog: rules over timestamped event streams, with a contract about time."""

__version__ = "0.1.0"
