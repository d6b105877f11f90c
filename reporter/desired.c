#include "desired.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/base/clock.h"
#include "../common/base/mem.h"
#include "../common/io/http_client.h"
#include "../common/model/ids.h"
#include "aggregate_text.h"
#include "check_text.h"

#define LINE_MAX_BYTES 8192

static struct str labels_of(const struct commit_view *view, int64_t pr)
{
    for (size_t i = 0; i < view->n_prs; i++)
        if (view->prs[i].pr == pr)
            return str_of(view->prs[i].lines);
    return STR_NONE;
}

bool check_may_start(const struct commit_view *view, int64_t pr)
{
    struct str rest = labels_of(view, pr), line, device;
    if (view->level != 3 || view->demoted)
        return view->level == 4;
    while (str_split(&rest, '\n', &line))
        if (ciflow_label_device(line, &device) && str_eq(device, view->device))
            return true;
    return false;
}

/* What GitHub is told for each state of a job. */
static const struct {
    const char *status;
    bool completed;
} states[] = {
    [JOB_NONE] = { "queued", false },
    [JOB_DISPATCHED] = { "queued", false },
    [JOB_IN_PROGRESS] = { "in_progress", false },
    [JOB_TIMED_OUT] = { "completed", true },
    [JOB_COMPLETED] = { "completed", true },
};

static bool all_digits(const char *text)
{
    uint64_t number;
    return text && str_to_u64(str_of(text), &number);
}

/* GitHub Actions numbers its runs; other CIs name theirs and tell the URL. */
static char *details_url(const struct result_record *job)
{
    struct buf url;
    if (!all_digits(job->run_id))
        return job->run_url && url_is_plain(str_of(job->run_url)) ? mem_dup(job->run_url) : NULL;
    buf_init(&url, LINE_MAX_BYTES);
    buf_printf(&url, "https://github.com/%s/actions/runs/%s", job->repo, job->run_id);
    return buf_take(&url, NULL);
}

static char *check_name(const struct result_record *job)
{
    struct buf name;
    buf_init(&name, LINE_MAX_BYTES);
    check_run_name(&name, str_of(job->repo), str_of(job->workflow_name), str_of(job->job_name));
    return buf_take(&name, NULL);
}

static char *external_id(const struct result_record *job)
{
    struct buf id;
    buf_init(&id, LINE_MAX_BYTES);
    buf_printf(&id, "%s:%" PRId64, job->run_id, job->pr_number);
    return buf_take(&id, NULL);
}

/* "<attempt>/<check_run_id>": which attempt of which job, among those of one name. With a slash in
 * a name two jobs may have one: workflow CI, job a/b, and workflow CI/a, job b. Then the workflow
 * is named too. */
static char *attempt_id(const struct result_record *job)
{
    struct buf id;
    buf_init(&id, LINE_MAX_BYTES);
    http_encode(&id, str_of(job->run_attempt));
    buf_putc(&id, '/');
    http_encode(&id, str_of(job->check_run_id));
    if (strchr(job->workflow_name, '/') || strchr(job->job_name, '/')) {
        buf_putc(&id, '/');
        http_encode(&id, str_of(job->workflow_name));
    }
    return buf_take(&id, NULL);
}

static char *joined(const char *before, const char *text, const char *after)
{
    struct buf both;
    buf_init(&both, LINE_MAX_BYTES);
    buf_printf(&both, "%s%s%s", before, text, after);
    return buf_take(&both, NULL);
}

/* As GitHub takes it; "" for anything that is no time. */
static void time_text(char to[32], const char *text)
{
    int64_t wall_ms;
    struct why why;
    to[0] = '\0';
    if (text && clock_parse(str_of(text), &wall_ms, &why) == OK)
        clock_format(wall_ms, to);
}

/* FNV-1a, 64 bits: tells two versions of one check run apart, nothing more. */
static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (const char *c = text ? text : ""; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
    return (hash ^ 0xff) * 0x100000001b3u;
}

static void digest_fill(struct wanted_check *check)
{
    const char *const parts[] = { check->status,      check->conclusion, check->details_url,
                                  check->title,       check->summary,    check->started_at,
                                  check->completed_at };
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        hash = hash_text(hash, parts[i]);
    if (check->aggregate) /* goes on under the next delivery's */
        hash = hash_text(hash, check->external_id);
    snprintf(check->digest, sizeof(check->digest), "%016" PRIx64, hash);
}

static void wanted_check_init(struct wanted_check *check, const struct result_record *job,
                              bool may_start)
{
    *check = (struct wanted_check){
        .job = job,
        .delivery = job->delivery_id,
        .may_start = may_start,
        .status = states[job->state].status,
        .completed = states[job->state].completed,
        .name = check_name(job),
        .external_id = external_id(job),
        .details_url = details_url(job),
    };
    char *attempt = attempt_id(job);
    char *prefix = joined(check->external_id, "/", "");
    check->conclusion = job_conclusion(job);
    check->slot = joined(prefix, attempt, "");
    check->marker = joined("<!-- crcr:", attempt, " -->");
    free(prefix);
    free(attempt);
    time_text(check->started_at, job->started_at);
    if (check->completed)
        time_text(check->completed_at, job->completed_at);
    check->title = check_title(job, check->conclusion);
    check->summary = check_summary(job, check->marker);
    digest_fill(check);
}

static bool complete_enough(const struct result_record *job)
{
    return job->repo && job->workflow_name && job->job_name && job->run_id && job->run_attempt &&
           job->check_run_id && job->state != JOB_NONE;
}

size_t desired_checks(const struct commit_view *view, struct wanted_check *to)
{
    size_t n = 0;
    for (size_t i = 0; i < view->n_jobs; i++) {
        const struct result_record *job = &view->jobs[i];
        if (job->pr_number > 0 && complete_enough(job) && !result_record_is_self(job))
            wanted_check_init(&to[n++], job, check_may_start(view, job->pr_number));
    }
    return n;
}

/* ---- the aggregate --------------------------------------------------------------------------- */

#define AGGREGATE_SLOT   "aggregate"
#define AGGREGATE_MARKER "<!-- crcr:aggregate -->"

struct check_slot aggregate_slot(struct buf *name, const char *repo)
{
    buf_reset(name);
    buf_printf(name, "crcr/%s", repo);
    return (struct check_slot){ buf_str(name), STR_LIT(AGGREGATE_SLOT) };
}

/* Of the only run, or of the job that is worst off. */
static char *aggregate_url(const struct aggregate *a)
{
    return a->n_jobs > 0 ? details_url(a->jobs[0]) : NULL;
}

static char *aggregate_id(const struct dispatch_view *dispatch)
{
    struct buf id;
    buf_init(&id, LINE_MAX_BYTES);
    buf_printf(&id, "d:%s:%" PRId64, dispatch->delivery, dispatch->pr);
    return buf_take(&id, NULL);
}

void desired_aggregate(const struct aggregate *a, const struct aggregate_view *view, bool may_start,
                       struct wanted_check *to)
{
    const struct dispatch_view *dispatch = view->dispatch;
    *to = (struct wanted_check){
        .aggregate = true,
        .delivery = dispatch->delivery,
        .may_start = may_start && a->started,
        .completed = a->conclusion != NULL,
        .status = a->status,
        .conclusion = a->conclusion,
        .name = joined("crcr/", dispatch->repo, ""),
        .external_id = aggregate_id(dispatch),
        .slot = mem_dup(AGGREGATE_SLOT),
        .marker = mem_dup(AGGREGATE_MARKER),
        .details_url = aggregate_url(a),
        .title = aggregate_title(a, view),
        .summary = aggregate_summary(a, view, AGGREGATE_MARKER),
    };
    if (dispatch->dispatched_ms > 0)
        clock_format(dispatch->dispatched_ms, to->started_at);
    if (to->completed && a->ended_ms > 0)
        clock_format(a->ended_ms, to->completed_at);
    digest_fill(to);
}

void wanted_check_clear(struct wanted_check *check)
{
    char *const texts[] = { check->name,        check->external_id, check->slot,   check->marker,
                            check->details_url, check->title,       check->summary };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        free(texts[i]);
}
