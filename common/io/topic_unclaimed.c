#include "topic_unclaimed.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PREFIX "unclaimed:"

void topic_unclaimed_init(struct topic_unclaimed *u, bool asked)
{
    *u = (struct topic_unclaimed){ .known = !asked };
}

static int64_t parse(struct str metadata)
{
    int64_t until;

    if (!str_starts(metadata, PREFIX) || !str_to_i64(str_from(metadata, strlen(PREFIX)), &until))
        return 0;
    return until;
}

void topic_unclaimed_inherit(struct topic_unclaimed *u, int64_t committed, struct str metadata)
{
    int64_t until = parse(metadata);

    *u = (struct topic_unclaimed){ .known = true };
    if (committed < 0 || until <= committed)
        return;
    u->from = committed;
    u->inherited = u->until = until;
}

void topic_unclaimed_see(struct topic_unclaimed *u, int64_t offset)
{
    if (offset < u->from)
        *u = (struct topic_unclaimed){ .known = true };
}

void topic_unclaimed_end(struct topic_unclaimed *u, int64_t offset)
{
    if (u->inherited > offset)
        u->inherited = offset;
}

void topic_unclaimed_told(struct topic_unclaimed *u, int64_t until)
{
    if (until > u->until)
        u->until = until;
}

bool topic_unclaimed_was(const struct topic_unclaimed *u, int64_t offset)
{
    return !u->known || offset < u->inherited;
}

bool topic_unclaimed_may_be(const struct topic_unclaimed *u, int64_t offset)
{
    return u->known && offset < u->until;
}

void topic_unclaimed_text(int64_t until, int64_t offset, char to[TOPIC_UNCLAIMED_TEXT_SIZE])
{
    to[0] = 0;
    if (offset < until)
        snprintf(to, TOPIC_UNCLAIMED_TEXT_SIZE, PREFIX "%" PRId64, until);
}
