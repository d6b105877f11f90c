#include "downstream.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/base/mem.h"
#include "../../common/model/callback.h"
#include "script.h"

#define SETTINGS_MAX 1000

struct downstreams {
    struct downstream *list[SETTINGS_MAX]; /* newest last; looked up from the end */
    size_t n;
};

static const char *const answers[] = {
    [ANSWER_NORMAL] = "normal", [ANSWER_NEVER] = "never",         [ANSWER_START] = "start",
    [ANSWER_END] = "end",       [ANSWER_DUPLICATE] = "duplicate", [ANSWER_REVERSED] = "reversed",
};

void downstream_release(struct downstream *d)
{
    if (!d || --d->refs > 0)
        return;
    json_decref(d->source);
    free(d);
}

static enum err answer_of(const char *name, enum answer_mode *ret, struct why *why)
{
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        if (strcmp(answers[i], name) == 0) {
            *ret = (enum answer_mode)i;
            return OK;
        }
    }
    return why_set(why, ERR_REFUSE,
                   "answer \"%s\" is none of normal, never, start, end, duplicate, reversed", name);
}

/* Reads a job's fields over what is there; the settings themselves are read the same way and are
 * what their jobs start from. */
static enum err job_read(const json_t *from, struct job_setting *job, struct why *why)
{
    const char *answer = NULL;
    json_int_t delay_ms = job->delay_ms, run_ms = job->run_ms;
    json_t *tests = NULL, *details = NULL;
    json_error_t error;
    enum err err;

    if (json_unpack_ex((json_t *)from, &error, 0, "{s?s, s?s, s?s, s?s, s?I, s?I, s?o, s?o}",
                       "name", &job->name, "conclusion", &job->conclusion, "again", &job->again,
                       "answer", &answer, "delay_ms", &delay_ms, "run_ms", &run_ms, "tests", &tests,
                       "details", &details))
        return why_set(why, ERR_REFUSE, "%s", error.text);
    if (job->again && !conclusion_valid(str_of(job->again)))
        return why_set(why, ERR_REFUSE, "again \"%s\" is no conclusion of GitHub's", job->again);
    if (!conclusion_valid(str_of(job->conclusion)))
        return why_set(why, ERR_REFUSE, "conclusion \"%s\" is none of GitHub's", job->conclusion);
    err = answer ? answer_of(answer, &job->answer, why) : OK;
    if (err)
        return err;
    job->delay_ms = delay_ms;
    job->run_ms = run_ms;
    if (tests)
        job->tests = tests;
    if (details)
        job->details = details;
    return OK;
}

static enum err jobs_read(const json_t *from, struct downstream *d, struct why *why)
{
    struct job_setting usual = {
        .name = "test", .conclusion = "success", .delay_ms = 300, .run_ms = 300
    };
    const json_t *jobs = json_object_get(from, "jobs");
    enum err err = job_read(from, &usual, why);
    const json_t *job;
    size_t i;

    if (err)
        return err;
    if (json_array_size(jobs) > DOWNSTREAM_JOBS)
        return why_set(why, ERR_REFUSE, "more than %d jobs", DOWNSTREAM_JOBS);
    d->n_jobs = jobs ? json_array_size(jobs) : 1;
    d->jobs[0] = usual;
    json_array_foreach(jobs, i, job)
    {
        d->jobs[i] = usual;
        err = job_read(job, &d->jobs[i], why);
        if (err)
            return why_prefix(why, err, "job %zu", i + 1);
    }
    return OK;
}

static enum err downstream_read(const json_t *source, struct downstream **ret, struct why *why)
{
    struct downstream *d = mem_alloc(1, sizeof(*d));
    int installed = 1, reports = 1;
    json_int_t after_ms = 100, retries = 3, retry_delay_ms = 500, every = 1;
    json_t *claims = NULL;
    json_error_t error;
    enum err err = OK;

    d->refs = 1;
    d->source = json_deep_copy(source);
    d->repo = "*";
    d->workflow = "CI";
    if (json_unpack_ex(d->source, &error, 0, "{s?s, s?b, s?b, s?s, s?I, s?I, s?I, s?I, s?o}",
                       "repo", &d->repo, "installed", &installed, "reports", &reports, "workflow",
                       &d->workflow, "after_ms", &after_ms, "retries", &retries, "retry_delay_ms",
                       &retry_delay_ms, "every", &every, "claims", &claims))
        err = why_set(why, ERR_REFUSE, "%s", error.text);
    else if (every < 1)
        err = why_set(why, ERR_REFUSE, "every is a number from 1");
    d->installed = installed;
    d->reports = reports;
    d->after_ms = after_ms;
    d->retries = retries;
    d->retry_delay_ms = retry_delay_ms;
    d->every = every;
    d->claims = claims;
    if (!err)
        err = jobs_read(d->source, d, why);
    if (err)
        downstream_release(d);
    else
        *ret = d;
    return err;
}

enum err downstreams_add(struct downstreams *d, const json_t *settings, struct why *why)
{
    json_t *list = json_is_array(settings) ? json_deep_copy(settings) : json_pack("[O]", settings);
    size_t before = d->n;
    enum err err = OK;

    /* From the last to the first: the first of a list is to be found first. */
    for (size_t i = json_array_size(list); i > 0 && !err; i--) {
        if (d->n == SETTINGS_MAX)
            err = why_set(why, ERR_REFUSE, "more than %d settings", SETTINGS_MAX);
        else
            err = downstream_read(json_array_get(list, i - 1), &d->list[d->n], why);
        if (err)
            err = why_prefix(why, err, "downstream %zu", i);
        else
            d->n++;
    }
    while (err && d->n > before)
        downstream_release(d->list[--d->n]);
    json_decref(list);
    return err;
}

struct downstreams *downstreams_new(void)
{
    struct downstreams *d = mem_alloc(1, sizeof(*d));

    downstreams_reset(d);
    return d;
}

void downstreams_reset(struct downstreams *d)
{
    json_t *usual = json_object();
    struct why why;

    while (d->n > 0)
        downstream_release(d->list[--d->n]);
    if (downstreams_add(d, usual, &why))
        abort(); /* the defaults are always right */
    json_decref(usual);
}

void downstreams_free(struct downstreams *d)
{
    if (!d)
        return;
    while (d->n > 0)
        downstream_release(d->list[--d->n]);
    free(d);
}

struct downstream *downstreams_find(struct downstreams *d, struct str repo)
{
    for (size_t i = d->n; i > 0; i--) {
        if (glob_matches_repo(d->list[i - 1]->repo, repo)) {
            d->list[i - 1]->refs++;
            return d->list[i - 1];
        }
    }
    return NULL;
}

bool downstreams_installed(struct downstreams *d, struct str repo)
{
    struct downstream *settings = downstreams_find(d, repo);
    bool installed = settings && settings->installed;

    downstream_release(settings);
    return installed;
}

json_t *downstreams_describe(const struct downstreams *d)
{
    json_t *list = json_array();

    for (size_t i = d->n; i > 0; i--)
        json_array_append(list, d->list[i - 1]->source);
    return list;
}
