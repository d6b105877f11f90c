/* What was last sent of each check run (crcr:check:<sha>/<name>): one hash a name, one field a job
 * attempt, so that the reconciler sends only what differs and the pages say how it is. It may be
 * lost: check runs are found again at GitHub. */
#ifndef CRCR_VIEW_CHECKS_H
#define CRCR_VIEW_CHECKS_H

#include "jobs.h"

struct check_sent {
    int64_t id; /* at GitHub; 0: none, and with a digest: GitHub refused to create that */
    bool completed;
    char digest[17]; /* of what was sent, also when GitHub refused it for good */
    char state[24];  /* at GitHub: queued, in_progress, or its conclusion; "": not known */
    char title[128]; /* of an aggregate */
};

/* One check run: its name, and which of that name: "<external_id>/<attempt>/<check_run_id>". */
struct check_slot {
    struct str name, slot; /* borrowed */
};

/* What was sent of n check runs of a commit, in one round trip; id 0 where nothing is known. */
enum err checks_sent_get(struct redis *r, struct str sha, const struct check_slot *slots, size_t n,
                         struct check_sent *ret, struct why *why) MUST_CHECK;
enum err check_sent_put(struct redis *r, struct str sha, const struct check_slot *slot,
                        const struct check_sent *sent, const struct view_times *times,
                        struct why *why) MUST_CHECK;
/* All that was sent under one name on a commit, for tools. */
struct check_listed {
    char *slot;
    struct check_sent sent;
};
struct check_list {
    struct check_listed *at;
    size_t n;
};
void check_list_clear(struct check_list *list);
enum err checks_sent_list(struct redis *r, struct str sha, struct str name, struct check_list *ret,
                          struct why *why) MUST_CHECK;

#endif
