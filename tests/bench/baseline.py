"""The instructions of each path as they were when somebody last looked (counts.json), and what has grown since."""
import json
import pathlib

FILE = pathlib.Path(__file__).resolve().with_name("counts.json")
MAY_GROW = 0.05
WRITE = "tests/bench/run --only counts --write-baseline"


def write(counts, file=FILE):
    """Of the relay's own paths; what stands for a floor under them is no path."""
    file.write_text(json.dumps({name: round(count) for name, count in counts.items() if ours(name)}, indent=1) + "\n")


def read(file=FILE):
    return json.loads(file.read_text())


def ours(name):
    return not name.startswith(("bare_chain", "produce_loop"))


def grown(before, now):
    """One line for each path that costs over 5 % more, is not counted any more, or has no baseline yet."""
    lines = []
    for name in sorted({*before, *filter(ours, now)}):
        if name not in now or name not in before:
            lines.append(f"{name}: " + ("not counted any more" if name not in now else "not in the baseline"))
        elif now[name] > before[name] * (1 + MAY_GROW):
            lines.append(f"{name}: {now[name] / 1000:,.1f} thousand instructions, {now[name] / before[name] - 1:.1%} more than "
                         f"{before[name] / 1000:,.1f}")
    return lines and [*lines, f"If that is meant: {WRITE}, and commit tests/bench/counts.json"]
