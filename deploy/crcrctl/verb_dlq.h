/* The parts of `crcrctl dlq`. */
#ifndef CRCR_CTL_VERB_DLQ_H
#define CRCR_CTL_VERB_DLQ_H

#include "ctl.h"
#include "dlq.h"

struct dlq_arguments {
    struct dlq_filter filter;
    bool all, json, dry_run;
    int rate; /* records a second; 0: no limit */
};

/* Reads the whole queue; *ret is settled, and the caller's to clear. CTL_OK or what to exit with.
 */
int dlq_read(struct ctl *ctl, struct dlq *ret);
/* A line an entry, or a JSON object. */
void dlq_print_head(void);
void dlq_print(const struct dlq_entry *entry, bool json, const struct topics *topics);
/* All of one record: headers, and its body. */
void dlq_print_record(const struct record *record);
/* Replays or drops what was chosen, as to says; the exit code. */
int dlq_resolve(struct ctl *ctl, const struct dlq_arguments *arguments, enum dlq_state to);

#endif
