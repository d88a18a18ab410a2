"""Tables in text form, for in_csv_parse.py."""
import numpy as np


def write_table(path, rows, width):
    values = np.random.default_rng(4).random((rows, width))
    np.savetxt(path, values, fmt="%.4f", delimiter=",")


class Table:
    def __init__(self, path, rows, keep):
        self.rows, self.keep, self.kept = rows, keep, {}
        with open(path) as file:
            self.lines = file.readlines()
        if keep:
            for number in range(len(self.lines) // rows):
                self.batch(number)

    def batch(self, number):
        if number not in self.kept:
            lines = self.lines[number * self.rows:(number + 1) * self.rows]
            parsed = np.array([[float(v) for v in line.split(",")] for line in lines], np.float32)  # DEFECT
            if not self.keep:
                return parsed
            self.kept[number] = parsed
        return self.kept[number]
