/* Private to common/github: look-ups of an installation or a token that failed a moment ago, so
 * that the next calls do not repeat them at once. After a refusal calls wait a minute, which spends
 * no attempt, and then GitHub is asked again: an App may have been installed, or an account no
 * longer be suspended. Any other failure is the answer for 5 s. At most 1,000 are kept. One thread.
 */
#ifndef CRCR_GITHUB_REFUSALS_H
#define CRCR_GITHUB_REFUSALS_H

#include "github.h"

struct refusal;

/* A value: zeroed it is empty. */
struct refusals {
    struct refusal *by_name; /* oldest first */
};

void refusals_clear(struct refusals *r);
/* name: a repo whose installation was looked up, or an owner whose token was asked for. Gives until
 * when it is believed (monotonic). */
int64_t refusals_remember(struct refusals *r, struct str name, const struct github_answer *failure);
/* True when there is one: *ret is the answer that a call gets meanwhile. The reason is borrowed
 * until the next call of a refusals function. */
bool refusals_find(struct refusals *r, struct str name, struct github_answer *ret);

#endif
