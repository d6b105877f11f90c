#include "trace_checks.h"

#include <stdlib.h>

#include "../../common/base/mem.h"
#include "../../common/model/ids.h"
#include "../../common/view/checks.h"
#include "../../common/view/comments.h"
#include "../../common/view/dispatches.h"

#define JOBS_MAX      1000
#define REPOS_MAX     2000
#define NAME_TEXT_MAX 2048

static void add(struct timeline_checks *to, const char *name, const struct check_sent *sent)
{
    to->at = mem_resize(to->at, to->n + 1, sizeof(*to->at));
    to->at[to->n++] = (struct timeline_check){ mem_dup(name), sent->id, sent->completed };
}

static void add_state(struct timeline_checks *to, const char *repo, const char *what,
                      const char *state)
{
    to->states = mem_resize(to->states, to->n_states + 1, sizeof(*to->states));
    to->states[to->n_states++] =
        (struct timeline_state){ mem_dup(repo), mem_dup(what), mem_dup(state) };
}

static void add_job_state(struct timeline_checks *to, const struct result_record *job)
{
    char what[400], state[64];

    snprintf(what, sizeof(what), "%s / %s", job->workflow_name ? job->workflow_name : "?",
             job->job_name ? job->job_name : "?");
    snprintf(state, sizeof(state), "%s%s%s", job_state_name(job->state), job->conclusion ? " " : "",
             job->conclusion ? job->conclusion : "");
    add_state(to, job->repo, what, state);
}

static bool is_there(const struct timeline_checks *checks, int64_t id)
{
    for (size_t i = 0; i < checks->n; i++)
        if (checks->at[i].id == id)
            return true;
    return false;
}

/* Those of one name on a commit whose slot begins with start. */
static enum err name_read(struct redis *redis, struct str sha, const char *name, const char *start,
                          struct timeline_checks *to, struct why *why)
{
    struct check_list CLEANUP(check_list_clear) list = { NULL, 0 };
    enum err err = checks_sent_list(redis, sha, str_of(name), &list, why);
    for (size_t i = 0; err == OK && i < list.n; i++)
        if (str_starts(str_of(list.at[i].slot), start) && !is_there(to, list.at[i].sent.id))
            add(to, name, &list.at[i].sent);
    return err;
}

/* The slot of a job's check run begins with "<run_id>:<pr>/". */
static enum err job_read(struct redis *redis, const struct result_record *job,
                         struct timeline_checks *to, struct why *why)
{
    struct buf CLEANUP(buf_clear) name;
    struct buf CLEANUP(buf_clear) start;
    buf_init(&name, NAME_TEXT_MAX);
    buf_init(&start, NAME_TEXT_MAX);
    if (!job->head_sha || !job->workflow_name || !job->job_name || !job->run_id)
        return OK;
    check_run_name(&name, str_of(job->repo), str_of(job->workflow_name), str_of(job->job_name));
    buf_printf(&start, "%s:%lld/", job->run_id, (long long)job->pr_number);
    return name_read(redis, str_of(job->head_sha), name.ptr, start.ptr, to, why);
}

static enum err jobs_read(struct redis *redis, struct str delivery, struct timeline_checks *to,
                          struct why *why)
{
    struct job_list CLEANUP(job_list_clear) jobs = { NULL, 0 };
    enum err err = jobs_of_delivery(redis, delivery, JOBS_MAX, 0, &jobs, why);
    for (size_t i = 0; err == OK && i < jobs.n; i++) {
        add_job_state(to, &jobs.at[i]);
        err = job_read(redis, &jobs.at[i], to, why);
    }
    return err;
}

/* One on-call comment a pull request and downstream. */
static enum err comment_read(struct redis *redis, const struct dispatch_view *dispatch,
                             struct timeline_checks *to, struct why *why)
{
    struct comment_sent sent = { .known = false };
    if (!dispatch->pr)
        return OK;
    enum err err = comment_sent_get(redis, dispatch->pr, str_of(dispatch->repo), &sent, why);
    if (err != OK || !sent.known || !sent.id)
        return err;
    to->comments = mem_resize(to->comments, to->n_comments + 1, sizeof(*to->comments));
    to->comments[to->n_comments++] =
        (struct timeline_comment){ mem_dup(dispatch->repo), dispatch->pr, sent.id };
    return OK;
}

/* One aggregate a commit and downstream, whichever delivery it was last about. */
static enum err dispatches_read(struct redis *redis, struct str delivery,
                                struct timeline_checks *to, struct why *why)
{
    struct dispatch_view *dispatches = NULL;
    size_t n = 0;
    enum err err = dispatches_of_delivery(redis, delivery, REPOS_MAX, &dispatches, &n, why);
    for (size_t i = 0; err == OK && i < n; i++) {
        char name[REPO_MAX + 8];
        add_state(to, dispatches[i].repo, "dispatch", dispatches[i].outcome);
        snprintf(name, sizeof(name), "crcr/%s", dispatches[i].repo);
        if (*dispatches[i].head_sha)
            err = name_read(redis, str_of(dispatches[i].head_sha), name, "", to, why);
        if (err == OK)
            err = comment_read(redis, &dispatches[i], to, why);
    }
    free(dispatches);
    return err;
}

void trace_checks_read(const struct ctl *ctl, struct str delivery, struct timeline_checks *ret)
{
    const struct redis_options options = ctl_redis(ctl);
    struct redis *redis = NULL;
    struct why why;
    *ret = (struct timeline_checks){ .at = NULL };
    if (!options.endpoint || !*options.endpoint) {
        snprintf(ret->trouble, sizeof(ret->trouble), "REDIS_ENDPOINT is not set");
        return;
    }
    enum err err = redis_new(&redis, &options, &why);
    if (err == OK)
        err = dispatches_read(redis, delivery, ret, &why);
    if (err == OK)
        err = jobs_read(redis, delivery, ret, &why);
    redis_free(redis);
    if (err != OK)
        snprintf(ret->trouble, sizeof(ret->trouble), "%.300s", why.text);
}
