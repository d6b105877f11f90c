/* Which of GitHub's webhooks are events of ours, and the record that each becomes. Ingest checks
 * what comes in with it, `crcrctl redeliver` what GitHub could not hand over. PURE. */
#ifndef CRCR_MODEL_EVENT_RULES_H
#define CRCR_MODEL_EVENT_RULES_H

#include "event.h"

struct event_rules {
    struct str upstream_repo;
    struct str push_refs; /* comma-separated, a star stands for anything; absent: all */
};

enum event_verdict { EVENT_ACCEPTED, EVENT_IGNORED, EVENT_MALFORMED };

/* False when no event of that kind and action is ever accepted, whatever its body says: so that a
 * body need not be fetched. action may be absent. */
bool event_may_count(enum event_kind kind, struct str action);
/* Classifies a body. IGNORED: *reason is a literal for logs and metrics ("other_repository",
 * "other_action"). MALFORMED: *reason is "body_malformed" and why says what is wrong.
 * *facts is filled when ACCEPTED. */
enum event_verdict event_classify(const struct event_rules *rules, enum event_kind kind,
                                  struct str body, struct event_facts *facts, const char **reason,
                                  struct why *why) MUST_CHECK;

/* The key of an accepted event is at most that long. */
#define EVENT_KEY_MAX (REPO_MAX + 1 + 512)
/* The event of an accepted body: what its record's headers will say. Borrows from facts; delivery,
 * source and received_ms are left to the caller. */
struct event event_of_facts(enum event_kind kind, const struct event_facts *facts);

#endif
