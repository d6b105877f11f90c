#include "runs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/mem.h"
#include "entries.h"
#include "keys.h"

static const char *const said_names[] = {
    [RUN_SAID_NOTHING] = "nothing",
    [RUN_SAID_GOING] = "going",
    [RUN_SAID_COMPLETED] = "completed",
    [RUN_SAID_NO] = "no",
};
#define SAID_NAMES (sizeof(said_names) / sizeof(said_names[0]))

void run_answers_clear(struct run_answers *answers)
{
    free(answers->at);
    *answers = (struct run_answers){ NULL, 0 };
}

const struct run_answer *run_answer_find(const struct run_answers *answers, const char *run_id)
{
    for (size_t i = 0; i < answers->n; i++)
        if (strcmp(answers->at[i].run_id, run_id) == 0)
            return &answers->at[i];
    return NULL;
}

void run_answers_set(struct run_answers *answers, const struct run_answer *answer)
{
    struct run_answer *old =
        (struct run_answer *)(uintptr_t)run_answer_find(answers, answer->run_id);
    if (old) {
        *old = *answer;
        return;
    }
    answers->at = mem_resize(answers->at, answers->n + 1, sizeof(*answers->at));
    answers->at[answers->n++] = *answer;
}

/* "<asked_ms> <said> <attempt> <conclusion, or -> <error>" */
static bool answer_parse(struct str run_id, struct str text, struct run_answer *ret)
{
    struct str asked, said, attempt, conclusion;
    *ret = (struct run_answer){ 0 };
    if (!str_split(&text, ' ', &asked) || !str_split(&text, ' ', &said) ||
        !str_split(&text, ' ', &attempt) || !str_split(&text, ' ', &conclusion) ||
        !str_to_i64(asked, &ret->asked_ms) || !str_to_i64(attempt, &ret->attempt) ||
        !str_copy(ret->run_id, sizeof(ret->run_id), run_id) ||
        !str_copy(ret->error, sizeof(ret->error), text))
        return false;
    if (!str_is(conclusion, "-"))
        str_copy(ret->conclusion, sizeof(ret->conclusion), conclusion);
    for (size_t i = 0; i < SAID_NAMES; i++)
        if (str_is(said, said_names[i])) {
            ret->said = (enum run_said)i;
            return true;
        }
    return false;
}

enum err run_answers_get(struct redis *r, struct str sha, struct str repo, struct run_answers *ret,
                         struct why *why)
{
    const struct redis_value *reply;
    enum err err =
        redis_call(r, &reply, REDIS_ARGS(STR_LIT("HGETALL"), key_runs(NEW_KEY, sha, repo)), why);
    if (err)
        return err;
    struct run_answers list = { mem_alloc(reply->n / 2 + 1, sizeof(*list.at)), 0 };
    for (size_t i = 0; i + 1 < reply->n; i += 2)
        list.n += answer_parse(reply->items[i].text, reply->items[i + 1].text, &list.at[list.n]);
    *ret = list;
    return OK;
}

enum err run_answer_put(struct redis *r, struct str sha, struct str repo,
                        const struct run_answer *answer, const struct view_times *times,
                        struct why *why)
{
    char value[400];
    snprintf(value, sizeof(value), "%" PRId64 " %s %" PRId64 " %s %s", answer->asked_ms,
             said_names[answer->said], answer->attempt,
             answer->conclusion[0] ? answer->conclusion : "-", answer->error);
    return view_field_put(r, key_runs(NEW_KEY, sha, repo), str_of(answer->run_id), str_of(value),
                          times, why);
}
