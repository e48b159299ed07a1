"""tools/frozen.py BEFORE NOW: each folder has a folder of tables (Markdown) for each round. Prints the ratio of the medians."""

import pathlib
import statistics
import sys


def cells(line):
    return [c.strip() for c in line.strip().strip("|").split("|")]


def number(text):
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def figures(folder):
    """Values by (file, row, column), one for each round. A row is the table's number in its file and the cells that are no numbers."""
    found = {}
    for path in sorted(pathlib.Path(folder).glob("*/*.md")):
        head, table, last = None, 0, ""
        for line in path.read_text().splitlines():
            if not line.startswith("|"):
                head = None
                continue
            row = cells(line)
            if head is None:
                head, table = row, table + 1
                continue
            if set("".join(row)) <= set("-:"):
                continue
            last = row[0] or last  # an empty first cell continues the row above
            name = " ".join([str(table), last] + [c for c in row[1:] if c and number(c) is None])
            for at, (column, cell) in enumerate(zip(head, row)):
                if at > 0 and number(cell) is not None:
                    found.setdefault((path.stem, name, f"{at} {column}"), []).append(number(cell))
    return found


def main():
    before, now = figures(sys.argv[1]), figures(sys.argv[2])
    both = [k for k in before if k in now]
    if not both:
        sys.exit("want tables in both folders with figures in common, found none")
    for k in both:
        old, new = statistics.median(before[k]), statistics.median(now[k])
        ratio = f"{new / old:6.2f}" if old else "     -"
        print(f"{ratio}  {new:12g} {old:12g}  {k[0]}: {k[1]}: {k[2]}")
    lost = [k for k in before if k not in now]
    print(f"{len(both)} figures: ratio, now, before (medians of the rounds); {len(lost)} only in the tables before")


main()
