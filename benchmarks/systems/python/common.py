"""Loops over the rows in the order of their times, as one would write them for this very task."""

import csv

warm_ups = 0


def rows(path):
    with path.open(newline="") as file:
        reader = csv.reader(file)
        next(reader)
        yield from reader


def write(path, columns, answers):
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(answers)
