/* Pull requests as they are now: what the last pull_request webhook or POST /_sim/pulls said.
 * https://docs.github.com/en/rest/pulls/pulls */
#ifndef CRCR_SIM_PULLS_H
#define CRCR_SIM_PULLS_H

#include "call.h"

struct pulls;

struct pulls *pulls_new(void);
void pulls_free(struct pulls *p);
void pulls_reset(struct pulls *p);
/* Remembers the pull_request of a webhook's payload, if it has one. */
void pulls_learn(struct pulls *p, const json_t *payload);

handler_fn pulls_get;
/* POST /_sim/pulls: a pull_request webhook's payload, which is remembered and not sent. */
handler_fn pulls_put;

#endif
