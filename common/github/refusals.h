/* Private to common/github: what was said a moment ago about a repo that the App cannot sign for,
 * so that the next calls for it fail at once and nothing hammers. A refusal is believed for a
 * minute, any other failure for 5 s; at most 1,000 are kept. One thread. */
#ifndef CRCR_GITHUB_REFUSALS_H
#define CRCR_GITHUB_REFUSALS_H

#include "github.h"

struct refusal;

/* A value: zeroed it is empty. */
struct refusals {
    struct refusal *by_repo; /* oldest first */
};

void refusals_clear(struct refusals *r);
void refusals_remember(struct refusals *r, struct str repo, const struct github_answer *failure);
/* True when there is one: *ret is the answer that a call would get. The reason is borrowed until
 * the next call of a refusals function. */
bool refusals_find(struct refusals *r, struct str repo, struct github_answer *ret);

#endif
