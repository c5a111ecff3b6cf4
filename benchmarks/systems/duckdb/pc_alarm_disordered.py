from pc_alarm import run  # noqa: F401 - the order of rows does not matter to a query
