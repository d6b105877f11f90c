#include "timeline.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/base/mem.h"

void timeline_init(struct timeline *t)
{
    *t = (struct timeline){ .steps = NULL };
}

void timeline_clear(struct timeline *t)
{
    free(t->steps);
    timeline_init(t);
}

void timeline_add(struct timeline *t, const struct summary *s)
{
    if (t->n == t->cap) {
        t->cap = t->cap ? 2 * t->cap : 64;
        t->steps = mem_resize(t->steps, t->cap, sizeof(*t->steps));
    }
    t->steps[t->n++] = *s;
}

/* The order of topics in enum topic is the way of the data, so it breaks ties of one millisecond.
 */
static int compare(const void *left, const void *right)
{
    const struct summary *a = left, *b = right;
    int by_delivery = strcmp(a->delivery, b->delivery);

    if (by_delivery)
        return by_delivery;
    if (a->at_ms != b->at_ms)
        return a->at_ms < b->at_ms ? -1 : 1;
    if (a->topic != b->topic)
        return a->topic < b->topic ? -1 : 1;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

void timeline_sort(struct timeline *t)
{
    if (t->n)
        qsort(t->steps, t->n, sizeof(*t->steps), compare);
}

/* ---- where each downstream stands ----------------------------------------------------------- */

static void age(char to[32], int64_t since_ms, int64_t now_ms)
{
    int64_t s = now_ms > since_ms ? (now_ms - since_ms) / 1000 : 0;

    if (s < 120)
        snprintf(to, 32, "%" PRId64 " s", s);
    else if (s < 7200)
        snprintf(to, 32, "%" PRId64 " min", s / 60);
    else
        snprintf(to, 32, "%" PRId64 " h", s / 3600);
}

static bool is_tier_topic(enum topic topic)
{
    return topic >= TOPIC_DISPATCH_L1 && topic <= TOPIC_DISPATCH_L4;
}

/* Whether a step changes where its downstream stands. A result repeats a callback, a dirty mark
 * says nothing to people, and what was replayed from the queue was routed again a moment before. */
static bool counts(const struct summary *s)
{
    bool replayed = s->topic == TOPIC_DLQ && str_is(str_of(s->outcome), "replayed");

    return *s->repo && s->topic != TOPIC_RESULTS && s->topic != TOPIC_RECONCILE && !replayed;
}

/* What to say after a step, by its outcome and how its kind begins; the first that matches. */
static const struct {
    const char *outcome, *kind;
    const char *text;
} explanations[] = {
    { "dispatched", "rerun",
      "it runs again, its jobs report under the delivery of their dispatch" },
    { "dispatched", "expand", "it has become the tasks above" },
    { "dispatched", "", "GitHub took the dispatch; no job has called back yet" },
    { "unknown", "", "the answer of GitHub was not seen; it is tried again" },
    { "waiting", "", "it is sent later" },
    { "failed", "", "it will not be sent again by itself" },
    { "superseded", "", "a newer event of the pull request was sent" },
    { "skipped", "", "it was not to be sent" },
    { "duplicate", "", "it had been sent before" },
    { "dropped", "", "somebody took it out of the dead-letter queue" },
    { "in_progress", "", "a job is running" },
};

static void explain(struct standing *to, const struct summary *s, int64_t now_ms)
{
    const char *text = NULL;
    char for_how_long[32];

    snprintf(to->state, sizeof(to->state), "%s", s->outcome);
    to->since_ms = s->at_ms;
    age(for_how_long, s->at_ms, now_ms);
    if (is_tier_topic(s->topic)) {
        snprintf(to->why, sizeof(to->why),
                 "no outcome for %s: waits for its sender in %s[%d]@%" PRId64 " (crcrctl lag)",
                 for_how_long, s->topic_name, (int)s->partition, s->offset);
        return;
    }
    if (s->tier == 1 && str_is(str_of(s->outcome), "dispatched")) {
        snprintf(to->why, sizeof(to->why), "L1 reports nothing back: %s", s->detail);
        return;
    }
    for (size_t i = 0; i < sizeof(explanations) / sizeof(*explanations) && !text; i++)
        if (str_is(str_of(s->outcome), explanations[i].outcome) &&
            str_starts(str_of(s->kind), explanations[i].kind))
            text = explanations[i].text;
    if (!text)
        snprintf(to->why, sizeof(to->why), "%s", s->detail);
    else
        snprintf(to->why, sizeof(to->why), "%s (for %s): %s", text, for_how_long, s->detail);
}

/* The outcome of a wait and the record that waits are written at once, in any order: the one that
 * says until when stands. */
static bool says_less(const struct standing *standing, const struct summary *s)
{
    return str_is(str_of(standing->state), "waits") && str_is(str_of(s->outcome), "waiting") &&
           s->at_ms - standing->since_ms < 1000;
}

static struct standing *standing_of(struct standing *all, size_t *n, const struct summary *s)
{
    for (size_t i = 0; i < *n; i++)
        if (str_eq_nocase(str_of(all[i].repo), str_of(s->repo)))
            return &all[i];
    if (*n == TIMELINE_MAX_REPOS)
        return NULL;
    all[*n] = (struct standing){ .repo = s->repo };
    return &all[(*n)++];
}

static int compare_standings(const void *left, const void *right)
{
    const struct standing *a = left, *b = right;

    return a->tier != b->tier ? a->tier - b->tier : strcmp(a->repo, b->repo);
}

size_t timeline_standings(const struct timeline *t, size_t first, size_t end, int64_t now_ms,
                          struct standing **ret)
{
    struct standing *all = mem_alloc(TIMELINE_MAX_REPOS, sizeof(*all));
    size_t n = 0;

    for (size_t i = first; i < end; i++) {
        const struct summary *s = &t->steps[i];
        struct standing *standing = counts(s) ? standing_of(all, &n, s) : NULL;
        if (!standing || says_less(standing, s))
            continue;
        if (s->tier)
            standing->tier = s->tier;
        explain(standing, s, now_ms);
    }
    qsort(all, n, sizeof(*all), compare_standings);
    *ret = all;
    return n;
}
