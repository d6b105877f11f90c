#include "epoch.h"

#include "keys.h"

#define INCONSISTENT "INCONSISTENT" /* code of the error with which the scripts refuse */

extern const char view_rebuild_lua[];
/* It remembers its SHA, and that memory is not locked. */
static _Thread_local struct redis_script rebuild_script = { .source = view_rebuild_lua };

static int64_t number_of(const struct redis_value *v)
{
    int64_t n;
    return v->type == REDIS_STR && str_to_i64(v->text, &n) ? n : 0;
}

/* ---- the epoch ------------------------------------------------------------------------------- */

enum err view_epoch_get(struct redis *r, int64_t *ret, struct why *why)
{
    const struct redis_value *v;
    enum err err = redis_call(r, &v, REDIS_ARGS(STR_LIT("GET"), STR_LIT(KEY_EPOCH)), why);
    if (!err)
        *ret = number_of(v);
    return err;
}

bool view_is_inconsistent(const struct redis *r)
{
    return redis_failed_with(r, INCONSISTENT);
}

/* ---- the lease ------------------------------------------------------------------------------- */

/* One call of rebuild.lua; a verdict and a text, borrowed from the connection. */
static enum err lease_call(struct redis *r, size_t argc, const struct str *argv,
                           struct str *verdict, struct str *text, struct why *why)
{
    struct str all[8] = { STR_LIT(KEY_REBUILD), STR_LIT(KEY_EPOCH) };
    const struct redis_value *v;
    for (size_t i = 0; i < argc; i++)
        all[2 + i] = argv[i];
    enum err err = redis_call_script(r, &rebuild_script, 2, 2 + argc, all, &v, why);
    if (err)
        return err;
    if (v->type != REDIS_ARRAY || v->n != 2)
        return why_set(why, ERR_STOP, "rebuild.lua gave an answer that is not its own");
    *verdict = v->items[0].text;
    *text = v->items[1].text;
    return OK;
}

static enum err lease_held(struct redis *r, size_t argc, const struct str *argv, struct why *why)
{
    struct str verdict, text;
    enum err err = lease_call(r, argc, argv, &verdict, &text, why);
    if (!err && !str_is(verdict, "held"))
        return why_set(why, ERR_REFUSE,
                       "the lease of the rebuild is lost: flushed, or taken over by another");
    return err;
}

enum err view_lease_take(struct redis *r, const char *owner, enum view_lease *ret, int64_t *fence,
                         struct why *why)
{
    struct str verdict, text;
    const struct str argv[] = { STR_LIT("take"), str_of(owner), STR_NUMBER(VIEW_LEASE_MS) };
    enum err err = lease_call(r, 3, argv, &verdict, &text, why);
    if (err)
        return err;
    *ret = str_is(verdict, "consistent") ? VIEW_LEASE_CONSISTENT
           : str_is(verdict, "busy")     ? VIEW_LEASE_BUSY
                                         : VIEW_LEASE_TAKEN;
    if (*ret == VIEW_LEASE_TAKEN && !str_to_i64(text, fence))
        return why_set(why, ERR_STOP, "rebuild.lua gave a fence that is no number");
    return OK;
}

enum err view_lease_renew(struct redis *r, int64_t fence, const char *phase, int64_t done,
                          int64_t total, struct why *why)
{
    const struct str argv[] = { STR_LIT("renew"), STR_NUMBER(fence), STR_NUMBER(VIEW_LEASE_MS),
                                str_of(phase),    STR_NUMBER(done),  STR_NUMBER(total) };
    return lease_held(r, sizeof(argv) / sizeof(argv[0]), argv, why);
}

enum err view_lease_release(struct redis *r, int64_t fence, struct why *why)
{
    const struct str argv[] = { STR_LIT("release"), STR_NUMBER(fence) };
    return lease_held(r, 2, argv, why);
}

enum err view_lease_finish(struct redis *r, int64_t fence, int64_t done, struct why *why)
{
    const struct str argv[] = { STR_LIT("finish"), STR_NUMBER(fence), STR_NUMBER(done) };
    return lease_held(r, 3, argv, why);
}

/* ---- for tools ------------------------------------------------------------------------------- */

enum err view_epoch_drop(struct redis *r, struct why *why)
{
    struct str verdict, text;
    const struct str argv[] = { STR_LIT("drop") };
    return lease_call(r, 1, argv, &verdict, &text, why);
}

/* A holder that was killed leaves its lease as it was: who runs is who may go on, as rebuild.lua
 * has it. */
static enum err lease_state(struct redis *r, struct view_rebuild *rebuild, int64_t until_ms,
                            struct why *why)
{
    const struct redis_value *v;

    if (!str_is(str_of(rebuild->state), "running"))
        return OK;
    enum err err = redis_call(r, &v, REDIS_ARGS(STR_LIT("TIME")), why);
    if (err)
        return err;
    if (v->type != REDIS_ARRAY || v->n != 2)
        return why_set(why, ERR_REFUSE, "TIME gave no time");
    if (until_ms <= number_of(&v->items[0]) * 1000 + number_of(&v->items[1]) / 1000)
        (void)str_copy(rebuild->state, sizeof(rebuild->state), STR_LIT("waiting"));
    return OK;
}

enum err view_rebuild_get(struct redis *r, struct view_rebuild *ret, struct why *why)
{
    const struct redis_value *v;
    int64_t epoch = 0;
    enum err err =
        redis_call(r, &v,
                   REDIS_ARGS(STR_LIT("HMGET"), STR_LIT(KEY_REBUILD), STR_LIT("state"),
                              STR_LIT("phase"), STR_LIT("owner"), STR_LIT("done"), STR_LIT("total"),
                              STR_LIT("started_ms"), STR_LIT("ended_ms"), STR_LIT("until_ms")),
                   why);
    if (err)
        return err;
    if (v->type != REDIS_ARRAY || v->n != 8)
        return why_set(why, ERR_REFUSE, "rebuild is no hash");
    struct view_rebuild rebuild = {
        .done = number_of(&v->items[3]),
        .total = number_of(&v->items[4]),
        .started_ms = number_of(&v->items[5]),
        .ended_ms = number_of(&v->items[6]),
    };
    (void)str_copy(rebuild.state, sizeof(rebuild.state), v->items[0].text);
    (void)str_copy(rebuild.phase, sizeof(rebuild.phase), v->items[1].text);
    (void)str_copy(rebuild.owner, sizeof(rebuild.owner), v->items[2].text);
    err = lease_state(r, &rebuild, number_of(&v->items[7]), why);
    if (!err)
        err = view_epoch_get(r, &epoch, why);
    rebuild.consistent = epoch != 0;
    if (!err)
        *ret = rebuild;
    return err;
}
