#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Turn what the benchmark's guests wrote into bench.json and report.txt.

usage: bench-report.py MODE DIR KERNEL... COMMAND

Reads DIR/MODE-KERNEL.N/results (what mark and the guest's scripts print) and,
for mode cost, DIR/MODE-KERNEL.N/marks (what the plugin appends).
"""
import glob
import json
import os
import sys
from statistics import median

# Work of other programs runs inside these, so their instructions say nothing.
NOT_ALONE = ("busy",)


def split_fields(words):
    """Turns KEY=N... into a dictionary."""
    return {key: int(value) for key, value in (w.split("=", 1) for w in words)}


def read_lines(path, name):
    """Returns the lines of a file, as lists of words; none if it is not there."""
    name = os.path.join(path, name)
    if not os.path.exists(name):
        return []
    with open(name, encoding="ascii", errors="replace") as lines:
        return [words for words in map(str.split, lines) if words]


def add_counts(fields, marks):
    """Adds what lies between the pairs of marks of one step."""
    marks = [[int(n) for n in m] for m in marks]
    begins, ends = marks[0::2], marks[1::2]
    if [m[0] for m in begins + ends] != [1] * len(begins) + [2] * len(ends):
        sys.exit("bench-report: marks out of order: is something else setting marks?")
    fields["instructions"] = sum(e[1] - b[1] for b, e in zip(begins, ends))
    fields["int3"] = sum(e[2] - b[2] for b, e in zip(begins, ends))
    fields["longest_window"] = max(e[3] for e in ends)


def read_boot(path):
    """Returns ({step: [fields of a round]}, {property: value})."""
    steps, about = {}, {}
    marks = read_lines(path, "marks")
    counting = False
    at = 0
    for what, *words in sum((read_lines(path, name)
                             for name in ("load", "results", "ended")), []):
        if what == "round":
            counting = words[0] != "0"
        elif what == "step":
            fields = split_fields(words[1:])
            pairs = fields.pop("pairs")
            if marks:
                add_counts(fields, marks[at:at + 2 * pairs])
                at += 2 * pairs
            if counting:
                steps.setdefault(words[0], []).append(fields)
        elif what == "load":
            about.update(w.split("=", 1) for w in words)
        elif what == "failed":
            sys.exit(f"bench-report: the guest failed at {words[0]}: see {path}console.log")
        elif what == "missing":
            about.setdefault("missing", []).append(words[0])
        elif words:
            about[what] = words[0]
    return steps, about


def read_kernel(directory, mode, kernel):
    """Returns {step: {measure: median}} and properties, over all boots."""
    rounds, about = {}, {}
    for path in sorted(glob.glob(f"{directory}/{mode}-{kernel}.*/")):
        steps, about = read_boot(path)
        for step, fields in steps.items():
            rounds.setdefault(step, []).extend(fields)
    medians = {}
    for step, all_fields in rounds.items():
        medians[step] = {key: median(f.get(key, 0) for f in all_fields)
                         for key in all_fields[0]}
    own = medians.pop("nothing", {})
    for fields in medians.values():
        if "instructions" in fields:
            fields["instructions"] -= own.get("instructions", 0)
    return medians, about


def number(value, unit=1):
    """Formats a measure: absent ones as a dash, small ones with decimals."""
    if value is None:
        return "-"
    value /= unit
    if value == int(value) or value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.{3 if value < 1 else 2 if value < 10 else 1}f}"


def table(head, rows):
    """Lays out rows of cells, the first left, the others right."""
    rows = [head] + rows
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    return ["  ".join(cell.rjust(width) if i else cell.ljust(width)
                      for i, (cell, width) in enumerate(zip(row, widths))).rstrip()
            for row in rows]


MEASURES = {
    "instructions": ("M instr", 1e6),
    "cal": ("CAL interrupts", 1),
    "int3": ("int3 traps", 1),
    "longest_window": ("longest IRQ-off window, instr", 1),
    "ns": ("guest ms", 1e6),
}


def compare(data):
    """One table for each measure: stock, ours and their ratio, step by step."""
    lines = []
    stock, ours = (data.get(k, {}).get("steps", {}) for k in ("stock", "ours"))
    steps = list(dict.fromkeys([*stock, *ours]))
    for key, (title, unit) in MEASURES.items():
        rows = []
        for step in steps:
            if key == "instructions" and step.split("-")[0] in NOT_ALONE:
                continue
            a, b = stock.get(step, {}).get(key), ours.get(step, {}).get(key)
            if a is None and b is None:
                continue
            ratio = f"{b / a:.3f}" if a and b is not None else "-"
            rows.append((step, number(a, unit), number(b, unit), ratio))
        if rows:
            lines += table((title, "stock", "ours", "ratio"), rows) + [""]
    return lines


def engine(data):
    """What the kernel's own counters say, where there are any."""
    lines = []
    for kernel, result in data.items():
        known = [k for fields in result["steps"].values() for k in fields
                 if k not in MEASURES]
        keys = list(dict.fromkeys(known))
        if not keys:
            continue
        rows = [(step, *(number(fields.get(k)) for k in keys))
                for step, fields in result["steps"].items()]
        lines += table((f"{kernel}: counters", *keys), rows) + [""]
    return lines


def main():
    """Writes bench.json and report.txt, prints the latter."""
    mode, directory, *kernels, command = sys.argv[1:]
    data = {}
    for kernel in kernels:
        steps, about = read_kernel(directory, mode, kernel)
        data[kernel] = {"about": about, "steps": steps}

    lines = [f"# {command}"]
    for kernel, result in data.items():
        lines.append(f"{kernel}: " + ", ".join(
            f"{k} {' '.join(v) if isinstance(v, list) else v}"
            for k, v in result["about"].items()))
    lines += ["", *compare(data), *engine(data)]
    report = "\n".join(lines).rstrip() + "\n"

    name = "" if mode == "cost" else f"-{mode}"
    with open(f"{directory}/bench{name}.json", "w", encoding="ascii") as out:
        json.dump({"mode": mode, "command": command, "kernels": data}, out, indent=1)
        out.write("\n")
    with open(f"{directory}/report{name}.txt", "w", encoding="ascii") as out:
        out.write(report)
    print(report, end="")


if __name__ == "__main__":
    main()
