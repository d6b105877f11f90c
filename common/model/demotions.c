#include "demotions.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "../base/clock.h"
#include "../base/json_put.h"
#include "../base/mem.h"
#include "ids.h"

#define SCHEMA_VERSION   1
#define REASON_MAX_BYTES 400

struct demotions *demotions_new(void)
{
    return mem_alloc(1, sizeof(struct demotions));
}

void demotions_free(struct demotions *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < d->n; i++) {
        free(d->at[i].repo);
        free(d->at[i].reason);
    }
    free(d->at);
    free(d);
}

void demotions_add(struct demotions *d, struct str repo, struct str reason, int64_t since_ms)
{
    d->at = mem_resize(d->at, d->n + 1, sizeof(*d->at));
    d->at[d->n++] = (struct demotion){
        .repo = str_dup(repo),
        .reason = str_dup(str_cut(reason.ptr ? reason : STR_LIT(""), REASON_MAX_BYTES)),
        .since_ms = since_ms,
    };
}

size_t demotions_size(const struct demotions *d)
{
    return d ? d->n : 0;
}

const struct demotion *demotions_find(const struct demotions *d, struct str repo)
{
    for (size_t i = 0; i < demotions_size(d); i++)
        if (str_eq_nocase(str_of(d->at[i].repo), repo))
            return &d->at[i];
    return NULL;
}

struct str demotion_of_pull(const struct event_facts *facts, struct str upstream)
{
    struct str branch = str_of(facts->head_ref), repo = str_from(branch, strlen(DEMOTION_BRANCH));
    bool labelled = false;
    for (size_t i = 0; i < facts->n_labels; i++)
        labelled |= str_eq_nocase(str_of(facts->labels[i]), STR_LIT(DEMOTION_LABEL));
    bool demotes = labelled && str_is(str_of(facts->state), "open") &&
                   str_eq_nocase(str_of(facts->head_repo), upstream) &&
                   str_starts(branch, DEMOTION_BRANCH) && repo_valid(repo);
    return demotes ? repo : STR_NONE;
}

bool demotions_equal(const struct demotions *a, const struct demotions *b)
{
    if (demotions_size(a) != demotions_size(b))
        return false;
    for (size_t i = 0; i < demotions_size(a); i++)
        if (!demotions_find(b, str_of(a->at[i].repo)))
            return false;
    return true;
}

void demotions_to_json(const struct demotions *d, int64_t at_ms, struct buf *to)
{
    buf_putc(to, '{');
    json_put_number(to, "schema_version", SCHEMA_VERSION);
    json_put_time(to, "at", at_ms);
    json_put_begin(to, "demoted", '[');
    for (size_t i = 0; i < demotions_size(d); i++) {
        json_put_begin(to, NULL, '{');
        json_put_text(to, "repo", str_of(d->at[i].repo));
        json_put_time(to, "since", d->at[i].since_ms);
        json_put_text(to, "reason", str_of(d->at[i].reason));
        buf_putc(to, '}');
    }
    buf_puts(to, "]}");
}

static enum err row_read(struct demotions *d, const json_t *row, struct why *why)
{
    const char *repo = json_string_value(json_object_get(row, "repo"));
    const char *since = json_string_value(json_object_get(row, "since"));
    const char *reason = json_string_value(json_object_get(row, "reason"));
    int64_t since_ms;
    if (!repo || !repo_valid(str_of(repo)))
        return why_set(why, ERR_REFUSE, "demotions: a row without a repo (owner/repo)");
    if (!since || clock_parse(str_of(since), &since_ms, why) || since_ms <= 0)
        return why_set(why, ERR_REFUSE, "demotions: %s: since is not a time", repo);
    demotions_add(d, str_of(repo), str_of(reason), since_ms);
    return OK;
}

enum err demotions_from_json(struct str json, struct demotions **ret, struct why *why)
{
    json_error_t error;
    json_auto_t *root =
        json_loadb(json.ptr ? json.ptr : "", json.len, JSON_REJECT_DUPLICATES, &error);
    const json_t *rows = json_object_get(root, "demoted");
    struct demotions *d = demotions_new();
    enum err err = OK;
    if (json_integer_value(json_object_get(root, "schema_version")) != SCHEMA_VERSION)
        err = why_set(why, ERR_REFUSE, "demotions: not a record of schema_version %d",
                      SCHEMA_VERSION);
    else if (!json_is_array(rows))
        err = why_set(why, ERR_REFUSE, "demotions: demoted is not a list");
    for (size_t i = 0; !err && i < json_array_size(rows); i++)
        err = row_read(d, json_array_get(rows, i), why);
    if (err) {
        demotions_free(d);
        return err;
    }
    *ret = d;
    return OK;
}
