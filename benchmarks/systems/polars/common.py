warm_ups = 0
TIME = "%Y-%m-%dT%H:%M:%SZ"
