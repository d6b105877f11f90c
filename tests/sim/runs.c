#include "runs.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/base/mem.h"
#include "shape.h"
#include "sim.h"

#define HEAD_SHA "4444444444444444444444444444444444444444" /* of the downstream's main */

struct runs {
    struct run *telling, *silent; /* oldest first */
    size_t keep;                  /* of each */
    int64_t next_id, next_number;
};

static const char *const statuses[] = { "queued", "in_progress", "completed" };

struct runs *runs_new(size_t keep)
{
    struct runs *r = mem_alloc(1, sizeof(*r));

    r->next_id = 900001;
    r->keep = keep;
    return r;
}

bool run_reports(const struct run *run)
{
    return run->settings->reports && run->number % run->settings->every == 0;
}

static void run_forget(struct run **list, struct run *run)
{
    HASH_DEL(*list, run);
    json_decref(run->payload);
    downstream_release(run->settings);
    free(run->repo);
    free(run);
}

void runs_reset(struct runs *r)
{
    while (r->telling)
        run_forget(&r->telling, r->telling);
    while (r->silent)
        run_forget(&r->silent, r->silent);
}

void runs_free(struct runs *r)
{
    if (!r)
        return;
    runs_reset(r);
    free(r);
}

void run_requeue(struct runs *r, struct run *run, bool failed_only, int64_t now_ms)
{
    run->attempt++;
    run->status = RUN_QUEUED;
    run->conclusion = NULL;
    run->cancelled = false;
    run->updated_ms = now_ms;
    for (size_t i = 0; i < run->settings->n_jobs; i++) {
        struct run_job *job = &run->jobs[i];

        if (failed_only && job->conclusion && strcmp(job->conclusion, "success") == 0)
            continue;
        *job = (struct run_job){ .id = r->next_id++ };
    }
}

struct run *runs_add(struct runs *r, struct str repo, json_t *payload, struct downstream *settings,
                     int64_t now_ms)
{
    struct run *run = mem_alloc(1, sizeof(*run));
    struct run **list;

    run->id = r->next_id++;
    run->number = r->next_number++;
    run->repo = str_dup(repo);
    run->payload = payload;
    run->settings = settings;
    run->created_ms = now_ms;
    run_requeue(r, run, false, now_ms);
    list = run_reports(run) ? &r->telling : &r->silent;
    if (HASH_COUNT(*list) == r->keep)
        run_forget(list, *list);
    HASH_ADD(hh, *list, id, sizeof(run->id), run);
    return run;
}

struct run *runs_find(struct runs *r, int64_t id)
{
    struct run *run;

    HASH_FIND(hh, r->telling, &id, sizeof(id), run);
    if (!run)
        HASH_FIND(hh, r->silent, &id, sizeof(id), run);
    return run;
}

static void set_url(json_t *to, const char *name, const char *base, const struct run *run,
                    const char *tail)
{
    json_object_set_new(to, name, json_sprintf("%s/repos/%s/actions/%s", base, run->repo, tail));
}

static void set_urls(json_t *to, const char *base, const struct run *run)
{
    static const char *const names[] = { "jobs", "logs", "artifacts", "cancel", "rerun" };
    char name[32], tail[96];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(name, sizeof(name), "%s_url", names[i]);
        snprintf(tail, sizeof(tail), "runs/%lld/%s", (long long)run->id, names[i]);
        set_url(to, name, base, run, tail);
    }
    snprintf(tail, sizeof(tail), "runs/%lld", (long long)run->id);
    set_url(to, "url", base, run, tail);
    set_url(to, "workflow_url", base, run, "workflows/1");
    json_object_set_new(to, "check_suite_url",
                        json_sprintf("%s/repos/%s/check-suites/1", base, run->repo));
    json_object_set_new(
        to, "html_url",
        json_sprintf("https://github.com/%s/actions/runs/%lld", run->repo, (long long)run->id));
}

static json_t *run_describe(const char *base, const struct run *run)
{
    json_t *repo = shape_repo(base, str_of(run->repo));
    json_t *document = json_pack(
        "{s:I, s:s, s:o, s:s, s:s, s:s, s:I, s:I, s:s, s:s, s:s?, s:i, s:[], s:o, s:o, s:o, s:o, "
        "s:O, s:O}",
        "id", (json_int_t)run->id, "name", run->settings->workflow, "node_id",
        shape_node_id("WFR", run->id), "head_branch", "main", "head_sha", HEAD_SHA, "path",
        ".github/workflows/crcr.yml", "run_number", (json_int_t)run->id, "run_attempt",
        (json_int_t)run->attempt, "event", "repository_dispatch", "status", statuses[run->status],
        "conclusion", run->conclusion, "workflow_id", 1, "pull_requests", "created_at",
        shape_time(run->created_ms), "updated_at", shape_time(run->updated_ms), "run_started_at",
        shape_time(run->created_ms), "head_commit", shape_simple_commit(str_of(HEAD_SHA)),
        "repository", repo, "head_repository", repo);

    json_object_set_new(document, "display_title", json_string(run->settings->workflow));
    set_urls(document, base, run);
    json_decref(repo);
    return document;
}

void runs_get(struct sim *sim, const struct call *call, struct reply *reply)
{
    const struct run *run = runs_find(sim->runs, call_id(call, 0));

    if (run && str_eq_nocase(str_of(run->repo), call->repo))
        reply_json(reply, 200, run_describe(sim->base_url, run));
    else
        reply_error(reply, 404, "Not Found");
}

static json_t *jobs_describe(const struct run *run)
{
    json_t *jobs = json_array();

    for (size_t i = 0; i < run->settings->n_jobs; i++) {
        const struct run_job *job = &run->jobs[i];

        json_array_append_new(jobs,
                              json_pack("{s:I, s:s, s:s, s:s?}", "id", (json_int_t)job->id, "name",
                                        run->settings->jobs[i].name, "status",
                                        statuses[job->status], "conclusion", job->conclusion));
    }
    return jobs;
}

static json_t *run_summary(const struct run *run)
{
    return json_pack("{s:I, s:s, s:I, s:s, s:s?, s:o}", "id", (json_int_t)run->id, "repo",
                     run->repo, "attempt", (json_int_t)run->attempt, "status",
                     statuses[run->status], "conclusion", run->conclusion, "jobs",
                     jobs_describe(run));
}

json_t *runs_describe(const struct runs *r)
{
    const struct run *telling = r->telling, *silent = r->silent;
    json_t *list = json_array();

    while (telling || silent) {
        const struct run **first =
            !silent || (telling && telling->id < silent->id) ? &telling : &silent;
        json_array_append_new(list, run_summary(*first));
        *first = (*first)->hh.next;
    }
    return list;
}
