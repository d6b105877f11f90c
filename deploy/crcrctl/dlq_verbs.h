/* What `crcrctl dlq list`, `show`, `replay` and `drop` share. */
#ifndef CRCR_CTL_DLQ_VERBS_H
#define CRCR_CTL_DLQ_VERBS_H

#include "dlq.h"
#include "newest.h"
#include "verbs.h"

/* What the arguments ask for; CTL_USAGE: a position is none. */
int dlq_filter_of(const struct ctl *ctl, const struct args *args, struct dlq_filter *ret);
/* Reads the whole queue; *ret is settled, and the caller's to clear. rows: NULL, or it is to want
 * the keys of what came from `results`. CTL_OK or what to exit with. */
int dlq_read(struct ctl *ctl, struct dlq *ret, struct newest *rows);
/* A line an entry, or a JSON object. */
void dlq_print(const struct dlq_entry *entry, bool json, const struct topics *topics);

#endif
