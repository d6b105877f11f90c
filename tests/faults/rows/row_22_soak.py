"""Half load for a long time: memory and file descriptors stand still."""
import os
import pathlib
import time

ROW, NAME = "22", "soak at half load"
PARTS = ("ingest", "dispatcher", "reporter")
RSS_SLOPE_MAX = 0.5  # MB a minute, over the second half
SAMPLE_S = 5


def sample(case):
    row = {}
    for part in PARTS:
        pid = case.relay.parts[part].pid
        for line in pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmRSS"):
                row[part, "rss"] = int(line.split()[1]) / 1024
        row[part, "fd"] = len(os.listdir(f"/proc/{pid}/fd"))
    return row


def slope_a_minute(times, values):
    """Least squares."""
    n, mean_t, mean_v = len(times), sum(times) / len(times), sum(values) / len(values)
    over = sum((t - mean_t) ** 2 for t in times)
    return 60 * sum((times[i] - mean_t) * (values[i] - mean_v) for i in range(n)) / over


def run(world, short=False):
    minutes = 1 if short else 60 if world.long else 10
    case = world.case("row-22").start()
    load = case.load(rate=25)
    began, times, samples = time.monotonic(), [], []
    while time.monotonic() - began < minutes * 60:
        time.sleep(SAMPLE_S)  # a sample every so often
        times.append(time.monotonic() - began)
        samples.append(sample(case))
        if len(times) % 12 == 0:
            case.say(f"row 22: {times[-1] / 60:.0f} of {minutes} min, " +
                     ", ".join(f"{part} {samples[-1][part, 'rss']:.1f} MB" for part in PARTS))
    load.stop()
    result = case.result(ROW, NAME, f"{minutes} min at {load.rate}/s × 12")
    half = len(times) // 2
    slopes = {key: slope_a_minute(times[half:], [row[key] for row in samples[half:]]) for key in samples[0]}
    result.note = ", ".join(f"{part} {slopes[part, 'rss']:+.2f} MB/min" for part in PARTS)
    for part in PARTS:
        if slopes[part, "rss"] > RSS_SLOPE_MAX:
            result.problems.append(f"{part} grows by {slopes[part, 'rss']:.2f} MB a minute")
        if abs(slopes[part, "fd"]) > 1:
            result.problems.append(f"{part} has {slopes[part, 'fd']:+.1f} file descriptors a minute")
    return result
