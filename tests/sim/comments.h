/* Comments on pull requests (GitHub's "issue comments").
 * https://docs.github.com/en/rest/issues/comments */
#ifndef CRCR_SIM_COMMENTS_H
#define CRCR_SIM_COMMENTS_H

#include "call.h"

struct comments;

struct comments *comments_new(void);
void comments_free(struct comments *c);
void comments_reset(struct comments *c);
json_t *comments_describe(const struct comments *c);

handler_fn comments_list, comments_create, comments_update;
/* POST /_sim/comments: somebody else's comment. */
handler_fn comments_put;

#endif
