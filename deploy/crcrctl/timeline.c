#include "timeline.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../../common/base/mem.h"
#include "../../common/model/attempt.h"
#include "out.h"
#include "repos.h"

void timeline_init(struct timeline *t)
{
    *t = (struct timeline){ .steps = NULL };
}

void timeline_clear(struct timeline *t)
{
    for (size_t i = 0; i < t->n; i++)
        summary_clear(&t->steps[i]);
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

static int order_of(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* The order of topics in enum topic is the way of the data, so it breaks ties of one millisecond.
 */
static int step_compare(const void *left, const void *right)
{
    const struct summary *a = left, *b = right;
    int order = strcmp(a->delivery, b->delivery);
    if (!order)
        order = order_of(a->at_ms, b->at_ms);
    if (!order)
        order = order_of(a->topic, b->topic);
    return order ? order : order_of(a->offset, b->offset);
}

void timeline_sort(struct timeline *t)
{
    if (t->n)
        qsort(t->steps, t->n, sizeof(*t->steps), step_compare);
}

/* ---- which callbacks count ------------------------------------------------------------------- */

/* Runs that are numbers come first, the newest before the others. */
static int compare_runs(const struct summary *a, const struct summary *b)
{
    uint64_t x, y;
    bool is_x = str_to_u64(str_of(a->run_id), &x), is_y = str_to_u64(str_of(b->run_id), &y);
    if (is_x != is_y)
        return is_x ? -1 : 1;
    if (is_x && x != y)
        return x > y ? -1 : 1;
    return strcmp(a->run_id, b->run_id);
}

/* By downstream and job; then what counts comes first. */
static int compare_jobs(const void *left, const void *right)
{
    const struct summary *a = *(const struct summary *const *)left;
    const struct summary *b = *(const struct summary *const *)right;
    int order = strcasecmp(a->repos, b->repos);
    if (!order)
        order = strcmp(a->job, b->job);
    if (!order)
        order = compare_runs(a, b);
    if (!order)
        order = attempt_compare(str_of(b->run_attempt), str_of(a->run_attempt));
    if (!order)
        order = strcmp(a->check_run_id, b->check_run_id);
    if (!order)
        order = order_of(b->job_state, a->job_state);
    return order ? order : order_of(a->at_ms, b->at_ms);
}

/* Whether b says nothing that counts beside a, which comes before it in the order above. A run id
 * that is no number has no order: its jobs count beside those of other runs. */
static bool is_replaced(const struct summary *a, const struct summary *b)
{
    uint64_t number;
    if (strcasecmp(a->repos, b->repos) != 0 || strcmp(a->job, b->job) != 0)
        return false;
    if (strcmp(a->run_id, b->run_id) != 0)
        return str_to_u64(str_of(b->run_id), &number);
    return strcmp(a->run_attempt, b->run_attempt) != 0 ||
           strcmp(a->check_run_id, b->check_run_id) == 0;
}

/* Of each job of steps[first … end) the callback that says how far it is: of its newest attempt
 * (and of the newest run, where runs are numbers) the one with the highest state, of these the
 * first. Those of one downstream are neighbours. Gives their number; *ret is the caller's to free,
 * the steps stay the timeline's. */
static size_t jobs_of(const struct timeline *t, size_t first, size_t end,
                      const struct summary ***ret)
{
    const struct summary **all = mem_alloc(end - first + 1, sizeof(*all));
    size_t n = 0, kept = 0;
    for (size_t i = first; i < end; i++)
        if (t->steps[i].job_state != JOB_NONE && t->steps[i].repos)
            all[n++] = &t->steps[i];
    qsort(all, n, sizeof(*all), compare_jobs);
    for (size_t i = 0; i < n; i++)
        if (!kept || !is_replaced(all[kept - 1], all[i]))
            all[kept++] = all[i];
    *ret = all;
    return kept;
}

/* ---- what they come to ---------------------------------------------------------------------- */

enum sort { FAILED, OPEN, SUCCEEDED, NEITHER };

/* Worst first, as in the aggregate check run, and what is open between bad and good. */
static const struct {
    const char *outcome;
    enum sort sort;
} job_outcomes[] = {
    { "failure", FAILED },         { "timed_out", FAILED }, { "cancelled", FAILED },
    { "action_required", FAILED }, { "in_progress", OPEN }, { "success", SUCCEEDED },
    { "stale", NEITHER },          { "neutral", NEITHER },  { "skipped", NEITHER },
    { "completed", NEITHER },
};
#define N_OUTCOMES (sizeof(job_outcomes) / sizeof(*job_outcomes))

/* One that nobody has heard of weighs as a failure. */
static size_t weight_of(const struct summary *job)
{
    for (size_t i = 0; i < N_OUTCOMES; i++)
        if (str_is(str_of(job->outcome), job_outcomes[i].outcome))
            return i;
    return 0;
}

static enum sort sort_of(const struct summary *job)
{
    return job_outcomes[weight_of(job)].sort;
}

/* "CI / a, CI / b": the jobs that are of that sort; a list that does not fit ends in "…". */
static void names_of(char *to, size_t size, const struct summary *const *jobs, size_t n,
                     enum sort sort)
{
    size_t used = 0;
    bool fits = true;
    for (size_t i = 0; fits && i < n; i++) {
        if (sort_of(jobs[i]) != sort)
            continue;
        fits = strlen(jobs[i]->job) + sizeof(", ") + sizeof(", …") <= size - used;
        snprintf(to + used, size - used, "%s%s", used ? ", " : "", fits ? jobs[i]->job : "…");
        used = strlen(to);
    }
}

/* ---- how far each downstream is ------------------------------------------------------------- */

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

static bool is_routing(const struct summary *s)
{
    return s->topic >= TOPIC_DISPATCH_L1 && s->topic <= TOPIC_DISPATCH_L4;
}

/* Whether a step says how far its downstreams are. A result repeats a callback, a dirty mark says
 * nothing to people, and what was replayed from the queue was routed again a moment before. */
static bool counts(const struct summary *s)
{
    bool replayed = s->topic == TOPIC_DLQ && str_is(str_of(s->outcome), "replayed");
    bool unreadable = s->topic == TOPIC_CALLBACKS && s->job_state == JOB_NONE;
    return s->topic != TOPIC_RESULTS && s->topic != TOPIC_RECONCILE && !replayed && !unreadable;
}

/* What to say after a step, by its outcome and how its kind begins; the first that matches. ends:
 * the step leaves things as they were, nothing new is under way after it. */
static const struct explanation {
    const char *outcome, *kind, *text;
    bool ends;
} explanations[] = {
    { "dispatched", "rerun", "it runs again, its jobs report under the delivery of their dispatch",
      true },
    { "dispatched", "expand", "it has become the tasks above", true },
    { "dispatched", "", "GitHub took the dispatch; no job has called back yet", true },
    { "unknown", "", "the answer of GitHub was not seen; it is tried again", false },
    { "waiting", "", "it is sent later", false },
    { "failed", "", "it will not be sent again by itself", false },
    { "superseded", "", "a newer event of the pull request was sent", true },
    { "skipped", "", "it was not to be sent", true },
    { "duplicate", "", "it had been sent before", true },
    { "dropped", "", "somebody took it out of the dead-letter queue", true },
    { "in_progress", "", "a job is running", false },
};

/* NULL: there is none. */
static const struct explanation *explanation_of(const struct summary *s)
{
    for (size_t i = 0; i < sizeof(explanations) / sizeof(*explanations); i++)
        if (str_is(str_of(s->outcome), explanations[i].outcome) &&
            str_starts(str_of(s->kind), explanations[i].kind))
            return &explanations[i];
    return NULL;
}

static void explain(struct downstream_state *to, const struct summary *s, int64_t now_ms)
{
    const struct explanation *known = explanation_of(s);
    char for_how_long[32];
    FORMAT(to->state, "%s", s->outcome);
    age(for_how_long, s->at_ms, now_ms);
    if (is_routing(s)) {
        FORMAT(to->why,
               "no outcome for %s: waits for its sender in %s[%d]@%" PRId64 " (crcrctl lag)",
               for_how_long, s->topic_name, (int)s->partition, s->offset);
        return;
    }
    if (s->tier == 1 && str_is(str_of(s->outcome), "dispatched")) {
        FORMAT(to->why, "L1 reports nothing back: %s", s->detail);
        return;
    }
    if (!known)
        FORMAT(to->why, "%s", s->detail);
    else
        FORMAT(to->why, "%s (for %s): %s", known->text, for_how_long, s->detail);
}

/* What several jobs come to; one alone is explained by its callback. */
static void explain_jobs(struct downstream_state *to, const struct summary *const *jobs, size_t n,
                         int64_t now_ms)
{
    const struct summary *worst = jobs[0]; /* failed before open before succeeded */
    size_t count[] = { [FAILED] = 0, [OPEN] = 0, [SUCCEEDED] = 0, [NEITHER] = 0 };
    int64_t open_since_ms = 0; /* of the open job that was reported first */
    char for_how_long[32], open[48] = "", names[400] = "";
    for (size_t i = 0; i < n; i++) {
        if (weight_of(jobs[i]) < weight_of(worst))
            worst = jobs[i];
        if (sort_of(jobs[i]) == OPEN && (!open_since_ms || jobs[i]->at_ms < open_since_ms))
            open_since_ms = jobs[i]->at_ms;
        count[sort_of(jobs[i])]++;
    }
    explain(to, worst, now_ms);
    if (n == 1)
        return;
    names_of(names, sizeof(names), jobs, n, sort_of(worst));
    age(for_how_long, open_since_ms, now_ms);
    if (count[OPEN])
        FORMAT(open, ", %zu in progress", count[OPEN]);
    if (count[FAILED])
        FORMAT(to->why, "%zu of %zu failed%s: %s", count[FAILED], n, open, names);
    else if (count[OPEN])
        FORMAT(to->why, "%zu of %zu jobs in progress (for %s): %s", count[OPEN], n, for_how_long,
               names);
    else if (count[SUCCEEDED] == n)
        FORMAT(to->why, "%zu of %zu succeeded", n, n);
    else
        FORMAT(to->why, "%zu of %zu succeeded, %zu neutral or skipped", count[SUCCEEDED], n,
               n - count[SUCCEEDED]);
}

/* What is known of one downstream; all is borrowed. */
struct downstream {
    struct str repo;
    int tier;
    const struct summary *sending; /* the last step that is no callback */
    const struct summary *sent;    /* the last that GitHub took */
    bool called_back;              /* a callback came after `sending` */
    const struct summary **jobs;
    size_t n_jobs;
};

static void add_step(struct downstream *to, const struct summary *s)
{
    if (s->tier)
        to->tier = s->tier;
    to->called_back = s->topic == TOPIC_CALLBACKS;
    if (to->called_back)
        return;
    /* The outcome of a wait and the record that waits are written at once, in any order: the one
     * that says until when counts. */
    if (to->sending && str_is(str_of(to->sending->outcome), "waits") &&
        (str_is(str_of(s->outcome), "waiting") || str_is(str_of(s->outcome), "unknown")) &&
        s->at_ms - to->sending->at_ms < 1000)
        return;
    to->sending = s;
    if (str_is(str_of(s->outcome), "dispatched"))
        to->sent = s;
}

/* Whether the routing at steps[at] has its outcome for repo. Not by time: hosts' clocks differ.
 * What was sent is the outcome of every routing of that task, since its claim ends each later one
 * as a duplicate. Else the first outcome of a try (seq, attempt) is that of its first routing, and
 * so on: what comes back from a delay that cost no attempt is the same try. */
static bool has_outcome(const struct timeline *t, size_t first, size_t end, size_t at,
                        struct str repo)
{
    const struct summary *routing = &t->steps[at];
    size_t routed = 0, outcomes = 0;
    for (size_t i = first; i < end; i++) {
        const struct summary *s = &t->steps[i];
        bool same = *s->seq && !strcmp(s->seq, routing->seq) && s->attempt == routing->attempt;
        if (strcmp(s->task, routing->task) != 0 || !repos_have(str_of(s->repos), repo))
            continue;
        if (s->topic == TOPIC_DISPATCHES &&
            (str_is(str_of(s->outcome), "dispatched") || str_is(str_of(s->outcome), "duplicate")))
            return true;
        routed += same && i <= at && is_routing(s);
        outcomes += same && s->topic == TOPIC_DISPATCHES;
    }
    return routed && outcomes >= routed;
}

static struct downstream *downstream_of(struct downstream *all, size_t *n, struct str repo)
{
    for (size_t i = 0; i < *n; i++)
        if (str_eq_nocase(all[i].repo, repo))
            return &all[i];
    if (*n == TIMELINE_MAX_REPOS)
        return NULL;
    all[*n] = (struct downstream){ .repo = repo };
    return &all[(*n)++];
}

static int compare_states(const void *left, const void *right)
{
    const struct downstream_state *a = left, *b = right;
    return a->tier != b->tier ? a->tier - b->tier : str_cmp(a->repo, b->repo);
}

size_t timeline_states(const struct timeline *t, size_t first, size_t end, int64_t now_ms,
                       struct downstream_state **ret)
{
    struct downstream *all = mem_alloc(TIMELINE_MAX_REPOS, sizeof(*all)), *one;
    const struct summary **jobs;
    size_t n = 0, n_jobs = jobs_of(t, first, end, &jobs);
    for (size_t i = first; i < end; i++) {
        struct str rest = str_of(t->steps[i].repos), repo;
        while (counts(&t->steps[i]) && str_split(&rest, ',', &repo))
            if ((one = downstream_of(all, &n, repo)) &&
                !(is_routing(&t->steps[i]) && has_outcome(t, first, end, i, repo)))
                add_step(one, &t->steps[i]);
    }
    for (size_t i = n_jobs; i-- > 0;)
        if ((one = downstream_of(all, &n, str_of(jobs[i]->repos)))) {
            one->jobs = &jobs[i];
            one->n_jobs++;
        }
    *ret = mem_alloc(n + 1, sizeof(**ret));
    for (size_t i = 0; i < n; i++) {
        const struct downstream *d = &all[i];
        const struct explanation *known = d->sending ? explanation_of(d->sending) : NULL;
        bool as_before = !d->sending || (known && known->ends);
        (*ret)[i] = (struct downstream_state){ .repo = d->repo, .tier = d->tier };
        /* Jobs, once they have called back, unless something else is under way or has gone wrong
         * since. */
        if (d->n_jobs && (d->called_back || as_before))
            explain_jobs(&(*ret)[i], d->jobs, d->n_jobs, now_ms);
        else
            explain(&(*ret)[i], as_before && d->sent ? d->sent : d->sending, now_ms);
    }
    qsort(*ret, n, sizeof(**ret), compare_states);
    free(jobs);
    free(all);
    return n;
}
