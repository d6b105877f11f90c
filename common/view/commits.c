#include "commits.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/mem.h"
#include "keys.h"

extern const char view_fold_main_lua[];
/* It remembers its SHA, and that memory is not locked. */
static _Thread_local struct redis_script fold_script = { .source = view_fold_main_lua };

#define PLACES PUSH_COMMITS_MAX /* of one second: fold_main.lua */

/* ---- main: folding --------------------------------------------------------------------------- */

/* "<sha> <parent or -> <pull request or 0> <title>": it follows from the push alone. */
#define MEMBER_MAX (sizeof(struct push_commit) + STR_NUMBER_SIZE)

enum err main_fold_queue(struct redis *r, const struct push *push, const struct view_times *times,
                         struct why *why)
{
    /* What would go at once is left out; the newest come last. */
    size_t first = push->n > MAIN_MAX ? push->n - MAIN_MAX : 0, n = 0;
    struct str *argv = mem_alloc(5 + push->n - first, sizeof(*argv));
    char(*members)[MEMBER_MAX] = mem_alloc(push->n + 1, sizeof(*members));
    argv[n++] = STR_LIT(KEY_MAIN);
    argv[n++] = times->fence ? STR_LIT(KEY_REBUILD) : STR_LIT(KEY_EPOCH);
    argv[n++] = times->fence ? STR_NUMBER(times->fence) : STR_LIT("");
    argv[n++] = STR_NUMBER(push->pushed_s);
    argv[n++] = STR_NUMBER((int64_t)first);
    for (size_t i = first; i < push->n; i++) {
        const struct push_commit *c = &push->commits[i];
        snprintf(members[i], MEMBER_MAX, "%s %s %" PRId64 " %s", c->sha,
                 c->parent[0] ? c->parent : "-", c->pr, c->title);
        argv[n++] = str_of(members[i]);
    }
    enum err err = redis_queue_script(r, &fold_script, 2, n, argv, why);
    free(members);
    free(argv);
    return err;
}

/* ---- main: reading --------------------------------------------------------------------------- */

void main_list_clear(struct main_list *list)
{
    free(list->at);
    *list = (struct main_list){ NULL, 0 };
}

static bool commit_read(struct str member, struct str score, struct main_commit *ret)
{
    struct push_commit *c = &ret->commit;
    struct str sha, parent, pr;
    int64_t at;
    *ret = (struct main_commit){ .pushed_ms = 0 };
    if (!str_split(&member, ' ', &sha) || !str_split(&member, ' ', &parent) ||
        !str_split(&member, ' ', &pr) || !str_to_i64(pr, &c->pr) || !str_to_i64(score, &at))
        return false;
    ret->pushed_ms = at / PLACES * 1000;
    if (!str_is(parent, "-"))
        (void)str_copy(c->parent, sizeof(c->parent), parent);
    (void)str_copy(c->title, sizeof(c->title), member);
    return str_copy(c->sha, sizeof(c->sha), sha);
}

/* Of two pushes of one second the one that begins where the other ended is the newer. */
static void seconds_sort(struct main_list *list)
{
    for (size_t i = 1; i < list->n; i++)
        for (size_t k = i; k > 0 && list->at[k - 1].pushed_ms == list->at[i].pushed_ms; k--) {
            if (strcmp(list->at[k - 1].commit.sha, list->at[i].commit.parent) != 0)
                continue;
            struct main_commit child = list->at[i];
            memmove(&list->at[k], &list->at[k - 1], (i - k + 1) * sizeof(child));
            list->at[k - 1] = child;
            break;
        }
}

enum err main_commits_get(struct redis *r, struct main_list *ret, struct why *why)
{
    const struct redis_value *reply;
    enum err err = redis_call(r, &reply,
                              REDIS_ARGS(STR_LIT("ZRANGE"), STR_LIT(KEY_MAIN), STR_LIT("0"),
                                         STR_LIT("-1"), STR_LIT("REV"), STR_LIT("WITHSCORES")),
                              why);
    if (err)
        return err;
    struct main_list list = { mem_alloc(reply->n / 2 + 1, sizeof(*list.at)), 0 };
    for (size_t i = 0; i + 1 < reply->n; i += 2)
        list.n += commit_read(reply->items[i].text, reply->items[i + 1].text, &list.at[list.n]);
    seconds_sort(&list);
    *ret = list;
    return OK;
}

/* ---- whether one exists ---------------------------------------------------------------------- */

enum err commit_seen_get(struct redis *r, struct str sha, enum commit_seen *ret, struct why *why)
{
    const struct redis_value *reply;
    enum err err = redis_call(r, &reply, REDIS_ARGS(STR_LIT("GET"), key_commit(NEW_KEY, sha)), why);
    if (err)
        return err;
    *ret = COMMIT_UNKNOWN;
    if (reply->type == REDIS_STR)
        *ret = str_is(reply->text, "1")   ? COMMIT_EXISTS
               : str_is(reply->text, "0") ? COMMIT_ABSENT
                                          : COMMIT_ASKED;
    return OK;
}

enum err commit_seen_put(struct redis *r, struct str sha, enum commit_seen seen,
                         const struct view_times *times, struct why *why)
{
    const struct redis_value *reply;
    return redis_call(r, &reply,
                      REDIS_ARGS(STR_LIT("SET"), key_commit(NEW_KEY, sha),
                                 seen == COMMIT_EXISTS   ? STR_LIT("1")
                                 : seen == COMMIT_ABSENT ? STR_LIT("0")
                                                         : STR_LIT("?"),
                                 STR_LIT("EX"), STR_NUMBER(times->ttl_s)),
                      why);
}
