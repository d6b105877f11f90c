"""The most that crcr-ingest and the reporter's pages may hold, added up from what their sources say: their containers' limits
must fit."""
import re

from lib.processes import ROOT

PARSED = 8 << 20  # a callback of 2 MiB and 20,000 members, parsed
PROGRAM = 64 << 20  # itself, the allowlist, librdkafka's and libcurl's buffers


KERNEL = 2  # it counts what it keeps of an answer with its own overhead: 91 MiB were measured of 2,900 × 16 KiB


def number(file, pattern):
    [found] = re.findall(pattern, (ROOT / file).read_text())
    return int(found)


def most_bytes(in_hand):
    """in_hand: CRCR_MAX_INFLIGHT_BYTES. What is in librdkafka's queue may have been answered 503, and be counted
    no more. Only who knows the webhook's secret has a form decoded (25 MiB): not counted."""
    connections = number("common/io/http_server.c", r"CONNECTIONS_DEFAULT = (\d+),")
    head = number("common/io/http_server.c", r"CONNECTION_MEMORY_BYTES = (\d+) \* 1024,") << 10
    queue = number("common/io/topic_writer.c", r'"queue.buffering.max.kbytes", "(\d+)"') << 10
    workers = number("ingest/callback_route.c", r"#define WORKERS +(\d+)") + 1
    return in_hand + connections * 2 * head + queue + workers * PARSED + PROGRAM  # a head is there twice: the copy


def most_bytes_of_pages():
    connections = number("reporter/web/web.c", r"#define MAX_CONNECTIONS (\d+)")
    head = number("common/io/http_server.c", r"CONNECTION_MEMORY_BYTES = (\d+) \* 1024,") << 10
    unsent = number("common/io/http_server.c", r"UNSENT_BYTES = (\d+) \* 1024,") << 10
    pages = number("reporter/web/live.c", r"#define HELD_BYTES +\((\d+)u << 20\)") << 20
    return pages + connections * (2 * head + KERNEL * unsent) + PROGRAM
