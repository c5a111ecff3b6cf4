from common import rows, write


def run(data, out):
    seen = {}
    for t, code in rows(data / "msg.csv"):
        if code not in seen:
            seen[code] = t
    write(out, ("T", "code"), ((t, code) for code, t in seen.items()))
