"""The measures of single rows of tests/faults can fail: the soak's (row 22) finds a leak, and takes nothing else for one;
that of stuck threads (row 21) sees a daemon that says nothing, or says it late; that of GitHub's answers (row 12) a call
before its time, and a delivery that ends otherwise; that of brokers' errors (row 6) a daemon that ended and did not name the
error; the load (row 19) a webhook that a replica took and dropped, that of the killed broker (row 5) whether any met it, that of
cut links (row 8) a second dispatch while none was cut, and the scrapes of all rows a metric that shows nothing."""
import http.client
import itertools
import math
import os
import pathlib
import random
import socket
import sys
import threading
import types

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "faults"))

from growth import growth  # noqa: E402 (after the path is set)
from load import Load, closed_meanwhile  # noqa: E402
from lib.ports import free_port  # noqa: E402
from rows import row_05_broker_killed as killed  # noqa: E402
from rows import row_06_broker_errors as broker  # noqa: E402
from rows import row_08_links as links  # noqa: E402
from rows import row_12_github as github  # noqa: E402
from rows import row_21_stuck as stuck  # noqa: E402
from rows import row_22_soak as soak  # noqa: E402
from scrape import Metrics, falls, grows, reaches, restarts  # noqa: E402

TIMES = [5.0 * n for n in range(1, 121)]  # ten minutes


def wavering(of, seed=1, by=0.3):
    """MB at each time, as RSS wavers."""
    chance = random.Random(seed)
    return [of(t) + chance.uniform(-by, by) for t in TIMES]


def samples(of_rss, kept=10):
    return [{(part, kind): value for part in soak.PARTS for kind, value in (("rss", rss), ("fd", 100), ("kept", kept))}
            for rss in of_rss]


def leaks(values):
    return growth(TIMES, values).leaks(soak.RSS_MOST)


def test_a_planted_leak_is_found():
    assert leaks(wavering(lambda t: 40 + 2 * soak.RSS_MOST * t / 60))


def test_a_leak_that_is_small_beside_the_warm_up_is_found():
    assert leaks(wavering(lambda t: 40 - 30 * math.exp(-t / 30) + 2 * soak.RSS_MOST * t / 60))


def test_what_stands_still_does_not_leak():
    assert not any(leaks(wavering(lambda t: 40.0, seed)) for seed in range(100))


def test_caches_that_fill_up_do_not_leak():
    assert not leaks(wavering(lambda t: 40 - 30 * math.exp(-t / 60)))


@pytest.mark.parametrize("at", [310, 400, 450, 500, 590])
def test_one_step_is_no_leak(at):
    assert not leaks(wavering(lambda t: 40.0 + (4 if t > at else 0), by=0.0))


def test_a_leak_below_the_bound_is_found_by_its_slope():
    found = growth(TIMES, [40 + 0.05 * t / 60 for t in TIMES])
    assert found.slope == pytest.approx(0.05) and not found.leaks(soak.RSS_MOST)


def test_what_wavers_too_much_is_not_shown_to_be_constant():
    _, problems = soak.evaluate(TIMES, samples(wavering(lambda t: 40.0 + t / 60, by=10)))
    assert len(problems) == 3 and all("is not shown to stand still" in one for one in problems)


def test_what_comes_back_to_its_floor_stands_still():
    def sawtooth(t):
        return 28.0 + 10 * (t % 240 > 60)
    assert soak.evaluate(TIMES, samples(wavering(sawtooth)))[1] == []
    assert len(soak.evaluate(TIMES, samples(wavering(lambda t: sawtooth(t) + t / 60)))[1]) == 3


def test_what_stands_still_is_shown_to():
    assert soak.evaluate(TIMES, samples(wavering(lambda t: 40.0)))[1] == []


def test_a_descriptor_every_half_minute_is_found():
    assert growth(TIMES, [100 + t // 30 for t in TIMES]).leaks(soak.FD_MOST)


def test_more_kept_connections_than_can_be_of_use_are_found():
    problems = soak.evaluate(TIMES, samples([40.0] * len(TIMES), kept=soak.KEPT_MOST["reporter"] + 1))[1]
    assert [one.split()[0] for one in problems] == ["reporter"] and "65 kept connections" in problems[0]


def test_a_connection_that_both_ends_keep_is_distinguished_from_a_leaked_one():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        ports = {server.getsockname()[1]}
        kept, others = soak.descriptors(os.getpid(), ports)
        with server.accept()[0]:
            assert soak.descriptors(os.getpid(), ports) == (kept + 1, others)
            client.close()  # who was accepted has not seen that
            assert soak.descriptors(os.getpid(), ports) == (0, others + 1)


def test_too_few_samples_say_nothing():
    with pytest.raises(AssertionError, match="say nothing"):
        growth(TIMES[:10], TIMES[:10])


def test_a_daemon_that_never_says_that_it_is_stuck_is_found(monkeypatch):
    clock = itertools.count(step=0.01)
    monkeypatch.setattr(stuck, "time", types.SimpleNamespace(monotonic=lambda: next(clock), sleep=lambda seconds: None))
    seen = stuck.watch(lambda name: name != "sound", lambda name: name == "silent", ["silent", "honest", "sound"])
    assert seen["silent"] is None and seen["sound"] is None and seen["honest"] < 0.5
    assert stuck.late(seen) == ["silent was never unhealthy", "sound was never unhealthy"]


def test_a_daemon_that_says_late_that_it_is_stuck_is_found():
    assert stuck.late({"quick": stuck.SEEN_MAX_S - 1.0}) == []
    assert stuck.late({"slow": stuck.SEEN_MAX_S + 1.0}) == ["slow was unhealthy only after 31.0 s"]


LIMIT = github.Answer("a limit", {}, 5, limit=True)
MOMENT = github.Answer("a limit that names a moment", {}, limit=True, until_s=20)
FAILURE = github.Answer("a failure", {}, 8)
REFUSAL = github.Answer("a refusal", {}, calls=1, refused="404")


@pytest.mark.parametrize("answer, calls, good", [
    (LIMIT, [("first", 0), ("first", 5000)], True),
    (LIMIT, [("first", 0), ("first", 4999)], False),
    (LIMIT, [("first", 0), ("another", 3000), ("first", 5000)], False),
    (MOMENT, [("first", 10_000), ("first", 20_000)], True),
    (MOMENT, [("first", 10_000), ("first", 19_999)], False),
    (FAILURE, [("first", 0), ("another", 3000), ("first", 8000)], True),
    (FAILURE, [("first", 0), ("first", 7999)], False),
    (FAILURE, [("first", 0)], False),
    (REFUSAL, [("first", 0)], True),
    (REFUSAL, [("first", 0), ("first", 60_000)], False),
])
def test_a_call_before_its_time_is_found(answer, calls, good):
    assert (github.gap_problems(answer, calls, "first", 0) == []) == good


EFFECT = github.Answer("accepted and cut off", {"effect": True})
ASKED = github.Answer("asked to wait", {}, waits="not yet")


@pytest.mark.parametrize("answer, delivery, sent, outcomes, dead, good", [
    (LIMIT, "first", 1, [], [], True),
    (LIMIT, "first", 2, [], [], False),
    (LIMIT, "later", 1, [], [], True),
    (LIMIT, "later", 0, [], [], False),
    (LIMIT, "later", 2, [], [], False),
    (LIMIT, "later", 1, [], [{"class": "refused", "error": "404"}], False),
    (LIMIT, "later", 0, [{"outcome": "superseded"}], [], True),
    (LIMIT, "first", 0, [{"outcome": "superseded"}], [], False),
    (EFFECT, "first", 2, [], [], True),
    (EFFECT, "first", 1, [], [], False),
    (EFFECT, "later", 1, [], [], True),
    (EFFECT, "later", 2, [], [], False),
    (ASKED, "first", 1, [{"outcome": "waiting", "error": "not yet"}], [], True),
    (ASKED, "first", 1, [], [], False),
    (ASKED, "later", 1, [], [], True),
    (REFUSAL, "later", 0, [], [{"class": "refused", "error": "404"}], True),
    (REFUSAL, "later", 1, [], [], False),
])
def test_a_delivery_that_ends_as_its_answer_does_not_say_is_found(answer, delivery, sent, outcomes, dead, good):
    key = delivery, "org/backend"
    checker = types.SimpleNamespace(parked={key: dead}, dispatches={key: [{}] * sent}, outcomes={key: outcomes})
    case = types.SimpleNamespace(checker=checker)
    assert (github.end_problems(answer, "org/backend", case, delivery, "first") == []) == good


ONCE_MORE = github.Answer("a refused JWT", {}, 5, before=2)
NO_TOKEN = github.Answer("a suspended installation", {}, 59, before=-1)


@pytest.mark.parametrize("answer, asked_ms, good", [
    (ONCE_MORE, [0, 5000], True),
    (ONCE_MORE, [0, 4999], False),
    (ONCE_MORE, [0], False),
    (ONCE_MORE, [0, 5000, 10_000], False),
    (NO_TOKEN, [0], True),
    (NO_TOKEN, [0, 60_000], True),
    (NO_TOKEN, [0, 30_000], False),
    (NO_TOKEN, [], False),
])
def test_a_token_that_is_asked_for_too_often_is_found(answer, asked_ms, good):
    assert (github.before_problems(answer, asked_ms) == []) == good


@pytest.mark.parametrize("line, error, good", [
    ('{"event":"role_failed","reason":"Kafka client: fatal error CLUSTER_AUTHORIZATION_FAILED: no"}', "CLUSTER_AUTHORIZATION_FAILED", True),
    ('{"event":"start_failed","reason":"Broker: Group authorization failed"}', "GROUP_AUTHORIZATION_FAILED", True),
    ('{"event":"role_failed","reason":"something else"}', "GROUP_AUTHORIZATION_FAILED", False),
    ('{"event":"role_failed","reason":""}', None, False),
    ('{"event":"role_failed","reason":"moved"}', None, True),
    ('{"level":"error","event":"claims_unavailable","reason":"GROUP_AUTHORIZATION_FAILED"}', "GROUP_AUTHORIZATION_FAILED", False),
])
def test_a_daemon_that_ended_and_did_not_name_the_error_is_found(line, error, good):
    assert any(broker.names(reason, error) for reason in broker.reasons(f"{line}\nno line of ours")) == good


ANSWER = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


@pytest.fixture
def replica():
    """A port; each connection to it is answered with what is appended to the list, once, then nothing."""
    said, listener = [], socket.create_server(("127.0.0.1", 0))

    def serve():
        while said:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(said.pop())
    server = threading.Thread(target=serve, daemon=True)
    yield listener.getsockname()[1], said, server
    listener.close()


def send(ports, count=4):
    """A load to these replicas."""
    relay = types.SimpleNamespace(host=lambda part: "127.0.0.1", ports=dict(enumerate(ports)))
    return Load(relay, types.SimpleNamespace(write=lambda line: None), "seed", count=count, senders=1, parts=tuple(range(len(ports)))).start().wait()


def test_a_webhook_whose_connection_is_refused_goes_to_the_next_replica(replica):
    port, said, server = replica
    said += [ANSWER] * 4
    server.start()
    load = send([port, free_port()])
    assert (load.answers, load.turned_away, load.lost) == ({202: 4}, 2, [])


def test_a_webhook_that_a_replica_took_and_dropped_is_lost(replica):
    port, said, server = replica
    said += [ANSWER, b""]  # the last one first
    server.start()
    load = send([port, port], count=1)  # the next one would take it
    assert (load.answers, load.turned_away, len(load.lost)) == ({0: 1}, 0, 1)


@pytest.mark.parametrize("at_ms, met", [(999, 0), (1000, 1), (1999, 1), (2000, 0)])
def test_webhooks_that_came_while_the_broker_was_dead_are_counted(at_ms, met):
    assert killed.met_a_kill({"one": at_ms}, [(1000, 2000), (5000, 6000)]) == met


@pytest.mark.parametrize("first_ms, wrong", [(7999, 1), (8000, 0), (15_000, 0), (20_000, 0), (20_001, 1)])
def test_a_second_dispatch_while_no_link_was_cut_is_found(first_ms, wrong):
    checker = types.SimpleNamespace(duplicates=lambda: {("d", "org/a"): 1}, dispatches={("d", "org/a"): [{"at_ms": first_ms}]})
    assert len(links.at_no_cut(types.SimpleNamespace(checker=checker), [(10_000, 20_000)])) == wrong


def scrapes(wanted, *texts):
    """What is left of one wish after these scrapes of a dispatcher: (when it was started, its series)."""
    metrics = Metrics([wanted])
    for started, series in texts:
        metrics.take("dispatcher2", "# HELP x A text.\n" + f"process_start_time_seconds {started}\n" + series + "\n")
    return [str(one) for one in metrics.left]


@pytest.mark.parametrize("texts, left", [
    ([(1, 'x{a="b"} 3'), (1, 'x{a="b"} 4')], 0),
    ([(1, 'x{a="b"} 3'), (1, 'x{a="b"} 3')], 1),
    ([(1, 'x{a="b"} 3')], 1),                         # what it had at the beginning
    ([(1, 'x{a="c"} 3'), (1, 'x{a="c"} 4')], 1),      # another series
    ([(1, 'xx{a="b"} 3'), (1, 'xx{a="b"} 4')], 1),
    ([(1, 'y 3'), (1, 'x{a="b",c="d"} 1')], 0),       # one that was not there before
    ([(1, 'x{a="b"} 3'), (2, 'x{a="b"} 1')], 0),      # a new process counts from 0
    ([(1, 'x{a="b"} 3'), (2, 'x{a="b"} 0')], 1),
])
def test_a_counter_has_grown_in_one_process(texts, left):
    assert len(scrapes(grows("dispatcher", "x", a="b"), *texts)) == left


def test_a_gauge_has_been_where_it_should():
    samples_of = [(1, "x 1"), (1, "x 0"), (1, "x 1")]
    assert not scrapes(falls("dispatcher", "x", 0), *samples_of) and not scrapes(reaches("dispatcher", "x", 1), *samples_of)
    assert scrapes(reaches("dispatcher", "x", 2), *samples_of) == ["x{} of dispatcher never reached 2"]
    assert scrapes(falls("dispatcher", "x", -1), *samples_of) == ["x{} of dispatcher never fell to -1"]


def test_a_restart_is_another_start_and_another_daemon_is_none():
    assert not scrapes(restarts("dispatcher"), (1, ""), (2, ""))
    assert scrapes(restarts("dispatcher"), (1, ""), (1, "")) and scrapes(restarts("reporter"), (1, ""), (2, ""))


@pytest.mark.parametrize("last", [b"", b"HTTP/1.1 408 Request Timeout\r\n\r\n"])
def test_a_connection_that_the_server_closed_meanwhile_is_not_used_again(last):
    """Silently, or with a last word."""
    ours, theirs = socket.socketpair()
    connection = http.client.HTTPConnection("nowhere")
    assert not closed_meanwhile(connection)  # none was made yet
    connection.sock = ours
    assert not closed_meanwhile(connection)
    theirs.sendall(last)
    theirs.close()
    assert closed_meanwhile(connection)
    ours.close()
