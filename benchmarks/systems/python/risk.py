from common import rows, write

from benchmarks.programs.risk import risk


def run(data, out):
    payments = rows(data / "payment.csv")
    answers = ((t, i) for t, i, euros, country in payments if risk(float(euros), country) > 0.9)
    write(out, ("T", "id"), answers)
