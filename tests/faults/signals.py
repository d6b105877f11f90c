"""What is to be seen of each fault (README.md, "By what each is seen from outside"): in the daemons' logs, and in their metrics."""
from scrape import falls, grows, reaches, restarts

# Row → events.
SAYS = {
    "2": ("rebuild_started", "rebuild_done"),
    "3": ("stopping", "stopped", "partitions_moved"),
    "4": ("publish_failed",),
    "7": ("claims_unavailable", "redis_unavailable", "view_inconsistent", "rebuild_done"),
    "8": ("partitions_lost",),
    "9": ("partitions_lost", "role_paused"),
    "11": ("breaker_opened", "breaker_closed"),
    "13": ("dead_letter",),
    "15": ("partitions_moved",),
    "18": ("hud_unavailable", "hud_back", "github_unavailable", "github_back"),
    "23": ("allowlist_refused", "allowlist_held", "allowlist_unreachable"),
}

UNAVAILABLE = grows("ingest", "crcr_ingest_requests_total", status="503")

# Case → what its metrics must have done, once all was started and before it is stopped. Rows 11, 20 (disk) and 23 look themselves.
SHOWS = {
    "1": (restarts("ingest"), restarts("dispatcher"), restarts("reporter")),
    "2": (restarts("ingest"), restarts("dispatcher"), restarts("reporter")),
    "3": (restarts("dispatcher"), restarts("reporter")),
    "4": (UNAVAILABLE,),
    "5": (UNAVAILABLE,),
    "6": (UNAVAILABLE, grows("ingest", "crcr_ingest_produce_failures_total")),
    "7": (falls("reporter", "crcr_redis_up", 0), falls("reporter", "crcr_view_consistent", 0),
          grows("dispatcher", "crcr_claims_total", verdict="none")),
    "8": (UNAVAILABLE, grows("dispatcher", "crcr_role_partitions_lost_total"), grows("reporter", "crcr_role_partitions_lost_total"),
          falls("reporter", "crcr_redis_up", 0)),
    "9": (grows("dispatcher", "crcr_role_partitions_lost_total"), grows("reporter", "crcr_role_partitions_lost_total")),
    "10": (grows("dispatcher", "crcr_dispatch_repo_outcomes_total", outcome="waiting", reason="held"),),
    "12": (grows("dispatcher", "crcr_parked_total"), grows("dispatcher", "crcr_dispatch_outcomes_total", outcome="failed"),
           grows("dispatcher", "crcr_dlq_total")),
    "13": (grows("ingest", "crcr_ingest_requests_total", status="400"), grows("ingest", "crcr_ingest_requests_total", status="413"),
           grows("dispatcher", "crcr_dlq_total", **{"class": "poison"}), grows("reporter", "crcr_dlq_total", **{"class": "poison"})),
    "14": (reaches("dispatcher", "crcr_role_lag_records", 1000), reaches("dispatcher", "crcr_role_backlog_seconds", 10)),
    "16": (grows("dispatcher", "crcr_dispatch_outcomes_total", outcome="duplicate"),),
    "18": (grows("reporter", "crcr_results_posted_total", outcome="waiting"),
           grows("reporter", "crcr_check_runs_total", outcome="unknown")),
    "20-disk": (UNAVAILABLE,),
    "20-used-up": (reaches("ingest", "process_open_fds", 5000),),
    "20-clock": (grows("ingest", "crcr_ingest_requests_total", status="401"),),
    "21": (reaches("dispatcher", "crcr_role_stalled_seconds", 15), reaches("reporter", "crcr_role_stalled_seconds", 15)),
}


def unsaid(row, folder, started):
    """Those of the row's that no log in the folder has, past what it had when all was started (log → bytes)."""
    wanted = set(SAYS.get(row, ()))
    for log in folder.glob("*.log"):
        with open(log, encoding="utf-8", errors="replace") as lines:
            lines.seek(started.get(log, 0))
            for line in lines:
                wanted -= {event for event in wanted if f'"event":"{event}"' in line}
                if not wanted:
                    return []
    return sorted(wanted)
