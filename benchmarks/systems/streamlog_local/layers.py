from functools import partial

from common import by_rules

run = partial(by_rules, "layers")
