/* Who changed something by hand: two records in the topic `audit` under one key, one before the
 * change and one of how it ended. All facts are in headers: `state` (began, ended), `verb`, `who`
 * (user@host); of the first `arguments` and, if given, `reason`; of the second `exit_code` and
 * `result`. A note of who acted as they should, no proof: the login `crcrctl` can write anything.
 */
#ifndef CRCR_CTL_AUDIT_H
#define CRCR_CTL_AUDIT_H

#include "verbs.h"

/* Zero at first. */
struct audit {
    struct topic_writer *writer; /* NULL: nothing was begun */
    char id[17];
};

/* Writes the first record and waits until it is stored; does nothing when that was done already.
 * Call it before the first change, which is not to be made unless this is OK. KAFKA_BROKERS
 * must be set. */
enum err audit_begin(struct audit *a, const struct ctl *ctl, const struct args *args,
                     struct why *why) MUST_CHECK;
/* Writes the second record, if there is a first; stderr says when it cannot be. Frees a, which can
 * begin anew. code: what the verb exits with; format: one line of what was done. */
void audit_end(struct audit *a, const struct ctl *ctl, int code, const char *format, ...)
    PRINTF_LIKE(4, 5);

#endif
