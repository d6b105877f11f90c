/* Private to common/github: keeps our calls within GitHub's limits before GitHub has to refuse any
 * (model/budget.h has the arithmetic). Limits hold for an account: the owner of a repo, who has one
 * installation of the App.
 *
 *   call ─▶ purse ─empty─▶ store, shared by all replicas ─away─▶ this process's part of the limits
 *           (a thread's    (Redis; the program joins it)          (limit ÷ replicas)
 *            slice, 1 s)
 *
 * A slice is several calls of one cost at once, so that a call usually asks nobody: 1 at first,
 * twice as many whenever one was used up in time, fewer when it was not. What was taken from the
 * store counts in the process's part too, and what was taken without it is told when it is back. */
#ifndef CRCR_GITHUB_BUDGET_H
#define CRCR_GITHUB_BUDGET_H

#include "github.h"

/* One thread's slices. */
struct purses;

/* budget, store and opaque are borrowed; budget may be NULL: no limit. store may be NULL: always
 * the process's part. low: all that is taken is of the lower class. */
struct purses *purses_new(struct github_budget *budget, github_budget_store_fn *store, void *opaque,
                          bool low);
void purses_free(struct purses *p);
/* Takes what the call costs. False: *ret is the answer that it gets (limited, sent_ms 0); its
 * reason is borrowed until the next refusal. */
bool purses_take(struct purses *p, struct str repo, const char *method, const char *path, bool low,
                 struct github_answer *ret) MUST_CHECK;
/* True while the last refusal for the repo's account stands: *ret is that answer. */
bool purses_refused(struct purses *p, struct str repo, struct github_answer *ret);
/* True while such a call is known to be refused: *ret is the answer, with the first moment at which
 * one may go. */
bool purses_held(struct purses *p, struct str repo, enum budget_call call, bool low,
                 struct github_answer *ret);
/* What the answer's x-ratelimit-* headers say, of the repo owner's installation. */
void purses_seen(struct purses *p, struct str repo, const struct github_answer *answer);
/* GitHub told us to wait until then (monotonic) with all calls for the repo owner's installation
 * (https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api,
 * "Handle rate limit errors appropriately"): the store is told at once, so that the other threads
 * and replicas hear of it when they refill, a second later at most. Not with a budget of the whole
 * App, of which a limit of one installation says nothing. */
void purses_limited(struct purses *p, struct str repo, int64_t until_ms);
/* As github_tell_budget. */
void purses_tell(struct purses *p, struct metrics *m, const struct budget_families *to,
                 struct str who);

#endif
