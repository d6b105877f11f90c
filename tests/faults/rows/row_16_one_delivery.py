"""The same delivery a thousand times at once."""
import uuid

ROW, NAME = "16", "the same delivery 1,000 times at once"
TIMES = 1000


def run(world, short=False):
    case = world.case("row-16").start("ingest", "dispatcher1", "dispatcher2", "reporter")
    load = case.load(rate=5000, count=TIMES, delivery=str(uuid.UUID(int=7)), senders=TIMES)
    load.wait()
    result = case.result(ROW, NAME, f"{load.answers.get(202, 0)} × 202 for one GUID")
    if len(case.checker.dispatches) != len(case.downstreams) or result.duplicated:
        result.problems.append(f"{len(case.checker.dispatches)} downstreams were dispatched to, "
                               f"{result.duplicated} of them again")
    if load.answers.get(202, 0) < TIMES // 2:
        result.problems.append(f"only {load.answers} were taken")
    return result
