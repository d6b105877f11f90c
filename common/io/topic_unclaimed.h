/* What the metadata of a partition's committed offset says of records that may have been acted on
 * without a trace elsewhere: calls that were made without a claim in Redis. PURE.
 *
 *        committed ▼                  until ▼          metadata: "unclaimed:<until>"
 *      ────────────┬────────────────────────┬─────────▶ offsets
 *       done       │ perhaps acted on       │ surely not without a claim
 *
 * It is told before the first such call, carried by every later commit until the committed offset
 * has reached it, and read by whoever is assigned the partition next. Other metadata says nothing.
 */
#ifndef CRCR_IO_TOPIC_UNCLAIMED_H
#define CRCR_IO_TOPIC_UNCLAIMED_H

#include <stdbool.h>
#include <stdint.h>

#include "../base/str.h"

/* How far ahead of what was handed out it is told, so that not each call needs a commit. */
#define TOPIC_UNCLAIMED_AHEAD     500
#define TOPIC_UNCLAIMED_TEXT_SIZE 32

struct topic_unclaimed {
    int64_t from;      /* committed when the partition was assigned */
    int64_t inherited; /* what is below may be an earlier owner's; 0: nothing */
    int64_t until;     /* the broker has it that what is below may be so; >= inherited */
    bool known;        /* inherited is; until then everything may be */
};

/* asked: whether the committed metadata will be asked for; else nothing is ever unclaimed. */
void topic_unclaimed_init(struct topic_unclaimed *u, bool asked);
/* What was committed, with its metadata, when the partition was assigned; committed below 0:
 * nothing was. */
void topic_unclaimed_inherit(struct topic_unclaimed *u, int64_t committed, struct str metadata);
/* An offset was handed out. One below what was committed is of another log, in which nothing was.
 */
void topic_unclaimed_see(struct topic_unclaimed *u, int64_t offset);
/* The log ended there after the partition was assigned: what follows was in nobody's hands before.
 */
void topic_unclaimed_end(struct topic_unclaimed *u, int64_t offset);
/* The broker has acknowledged a commit that told it. */
void topic_unclaimed_told(struct topic_unclaimed *u, int64_t until);
/* Whether an earlier owner may have acted on it without a claim. */
bool topic_unclaimed_was(const struct topic_unclaimed *u, int64_t offset);
/* Whether the broker has it that it may be acted on without a claim. */
bool topic_unclaimed_may_be(const struct topic_unclaimed *u, int64_t offset);
/* The metadata for a commit of that offset; "" once it has been reached. */
void topic_unclaimed_text(int64_t until, int64_t offset, char to[TOPIC_UNCLAIMED_TEXT_SIZE]);

#endif
