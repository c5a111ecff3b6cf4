from pc_alarm import run  # noqa: F401
