"""Whether something grows that should stand still, from samples of it. Caches fill up first: only the second half counts.
What grows by a leak grows all the time, and by more than the samples waver; what makes one step does not leak, nor what comes
back to its floor: glibc gives memory back minutes after the program did."""
import dataclasses
import statistics

BLOCKS = 10
# Student's t, one-sided 97.5 %, for BLOCKS - 2 degrees of freedom.
T_975 = 2.306


@dataclasses.dataclass
class Growth:
    """A minute: the least-squares slope, and the ends of its 95 % confidence interval."""
    slope: float
    least: float
    most: float
    steady: bool  # it goes up between most blocks, not once
    floor: float  # how the least of the later half of what comes after the first quarter lies above that of the earlier half

    def leaks(self, most):
        """More than `most` a minute, certainly and steadily."""
        return self.steady and self.slope > most and self.least > 0

    def stands_still(self, most):
        """Less than `most` a minute, certainly, or its floor does."""
        return self.most <= most or self.floor <= most


def line_through(times, values):
    """Slope of the least-squares line, and its standard error."""
    n, mean_t, mean_v = len(times), statistics.fmean(times), statistics.fmean(values)
    over = sum((t - mean_t) ** 2 for t in times)
    slope = sum((t - mean_t) * (v - mean_v) for t, v in zip(times, values)) / over
    rest = sum((v - mean_v - slope * (t - mean_t)) ** 2 for t, v in zip(times, values))
    return slope, (rest / (n - 2) / over) ** 0.5


def growth(times, values):
    """times in seconds. The second half in blocks. The least of each: what leaks is never given back, and what is taken and
    given back within a block is no growth."""
    floor = floor_of(times, values)
    half = len(times) // 2
    times, values = times[half:], values[half:]
    assert len(times) >= BLOCKS, f"{len(times)} samples of the second half say nothing"
    cuts = [len(times) * number // BLOCKS for number in range(BLOCKS + 1)]
    blocks = [slice(*pair) for pair in zip(cuts, cuts[1:])]
    t = [statistics.fmean(times[block]) / 60 for block in blocks]
    v = [min(values[block]) for block in blocks]
    slope, error = line_through(t, v)
    ups = sum(after > before for before, after in zip(v, v[1:]))
    return Growth(slope, slope - T_975 * error, slope + T_975 * error, ups > (BLOCKS - 1) / 2, floor)


def floor_of(times, values):
    quarter = len(times) // 4
    times, values = times[quarter:], values[quarter:]
    half = len(times) // 2
    return (min(values[half:]) - min(values[:half])) / ((times[-1] - times[0]) / 2 / 60)
