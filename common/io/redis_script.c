/* Scripts are called by SHA (EVALSHA). A SHA not known yet is asked for with SCRIPT LOAD, and the
 * call itself goes out with the source, so that nothing waits for the answer. */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#include "../base/mem.h"
#include "redis_inner.h"

enum { HEAD = 3, NUMBER_SIZE = 24 }; /* EVALSHA sha n_keys … */

static enum err append_call(struct redis *r, const struct redis_pending *p, bool by_sha,
                            struct why *why)
{
    char n_keys[NUMBER_SIZE];
    struct str *all = mem_alloc(HEAD + p->argc, sizeof(*all));
    int len = snprintf(n_keys, sizeof(n_keys), "%zu", p->n_keys);
    all[0] = by_sha ? STR_LIT("EVALSHA") : STR_LIT("EVAL");
    all[1] = str_of(by_sha ? p->script->sha : p->script->source);
    all[2] = (struct str){ n_keys, (size_t)len };
    for (size_t i = 0; i < p->argc; i++)
        all[HEAD + i] = p->argv[i];
    enum err err = redis_link_append(r, HEAD + p->argc, all, why);
    free(all);
    return err;
}

static enum err append_load(struct redis *r, struct redis_script *script, struct why *why)
{
    const struct str argv[] = { STR_LIT("SCRIPT"), STR_LIT("LOAD"), str_of(script->source) };
    enum err err = redis_link_append(r, 3, argv, why);
    if (err)
        return err;
    struct redis_pending *load = mem_alloc(1, sizeof(*load));
    load->script = script;
    load->learns_sha = true;
    DL_APPEND2(r->wire, load, wire_prev, wire_next);
    return OK;
}

enum err redis_script_append(struct redis *r, struct redis_pending *p, struct why *why)
{
    if (p->script->sha[0])
        return append_call(r, p, true, why);
    enum err err = append_load(r, p->script, why);
    return err ? err : append_call(r, p, false, why);
}

bool redis_script_repair(struct redis *r, struct redis_pending *p, const redisReply *reply)
{
    struct str text = { reply->str, reply->str ? (size_t)reply->len : 0 };
    if (!p->script || p->repaired || reply->type != REDIS_REPLY_ERROR ||
        !str_starts(text, "NOSCRIPT"))
        return false;
    if (append_call(r, p, false, NULL))
        return false;
    p->repaired = true;
    DL_APPEND2(r->wire, p, wire_prev, wire_next);
    return true;
}
