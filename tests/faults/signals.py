"""What the daemons' logs must say of each fault (README.md, "By what each is seen from outside"): row → events."""

SAYS = {
    "2": ("rebuild_started", "rebuild_done"),
    "3": ("stopping", "stopped", "partitions_moved"),
    "4": ("publish_failed",),
    "7": ("claims_unavailable", "redis_away", "view_not_whole", "rebuild_done"),
    "8": ("partitions_lost",),
    "9": ("partitions_lost", "role_stood_still"),
    "11": ("breaker_opened", "breaker_closed"),
    "13": ("event_buried", "task_unreadable"),
    "15": ("partitions_moved",),
    "18": ("hud_away", "hud_back", "check_runs_away", "check_runs_back"),
    "23": ("allowlist_refused", "allowlist_held", "allowlist_unreachable"),
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
