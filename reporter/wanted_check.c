#include "wanted_check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/base/clock.h"
#include "../common/base/mem.h"
#include "../common/io/http_client.h"
#include "../common/model/ids.h"
#include "check_text.h"

#define LINE_MAX_BYTES   8192
#define AGGREGATE_SLOT   "aggregate"
#define AGGREGATE_MARKER "<!-- crcr:aggregate -->"
#define MARKER_START     "<!-- crcr:"

/* What each state of a job is at GitHub. */
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

/* The caller's. */
static char *text_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
static char *text_format(const char *format, ...)
{
    char line[LINE_MAX_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    return mem_dup(line);
}

static bool is_number(const char *run_id)
{
    uint64_t number;
    return run_id && str_to_u64(str_of(run_id), &number);
}

/* GitHub Actions numbers its runs; other CIs report the URL, and may number theirs, too. */
static char *details_url(const struct result_record *job)
{
    if (is_number(job->run_id) && !result_record_is_of_other_ci(job))
        return text_format("https://github.com/%s/actions/runs/%s", job->repo, job->run_id);
    return job->run_url && url_is_plain(str_of(job->run_url)) ? mem_dup(job->run_url) : NULL;
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

/* As GitHub takes it; "" for anything that is no time. */
static void time_text(char to[32], const char *text)
{
    int64_t wall_ms;
    struct why why;
    to[0] = '\0';
    if (text && !clock_parse(str_of(text), &wall_ms, &why))
        clock_format(wall_ms, to);
}

static void digest_fill(struct wanted_check *check)
{
    const char *const parts[] = {
        check->status,  check->conclusion, check->details_url,  check->title,
        check->summary, check->started_at, check->completed_at, check->external_id,
    };
    size_t n = sizeof(parts) / sizeof(parts[0]);
    uint64_t digest = DIGEST_START;
    if (!check->aggregate)
        n--; /* only an aggregate gets another external_id: the next delivery's */
    for (size_t i = 0; i < n; i++)
        digest = digest_add(digest_add_text(digest, str_of(parts[i])), STR_LIT("\xff"));
    snprintf(check->digest, sizeof(check->digest), "%016" PRIx64, digest);
}

void wanted_check_of_job(const struct result_record *job, bool may_start, bool past,
                         struct wanted_check *to)
{
    char *attempt = attempt_id(job);
    struct buf name, external_id;
    buf_init(&name, LINE_MAX_BYTES);
    buf_init(&external_id, LINE_MAX_BYTES);
    http_encode(&external_id, str_of(job->run_id)); /* readers split at the colon */
    buf_printf(&external_id, ":%" PRId64, job->pr_number);
    check_run_name(&name, str_of(job->repo), str_of(job->workflow_name), str_of(job->job_name));
    *to = (struct wanted_check){
        .job = job,
        .delivery = job->delivery_id,
        .may_start = may_start,
        .past = past,
        .pr = job->pr_number,
        .status = states[job->state].status,
        .completed = states[job->state].completed,
        .conclusion = job_conclusion(job),
        .name = buf_take(&name, NULL),
        .external_id = buf_take(&external_id, NULL),
        .marker = text_format(MARKER_START "%s -->", attempt),
        .details_url = details_url(job),
    };
    to->slot = text_format("%s/%s", to->external_id, attempt);
    free(attempt);
    time_text(to->started_at, job->started_at);
    if (to->completed)
        time_text(to->completed_at, job->completed_at);
    to->title = check_title(job, to->conclusion);
    to->summary = check_summary(job, to->marker);
    digest_fill(to);
}

/* The box of this back end on the pull request's page; without pages the only run, or the job that
 * is worst off. */
static char *aggregate_url(const struct aggregate *a, const struct aggregate_view *view)
{
    const struct dispatch_view *dispatch = view->dispatch;
    if (!view->public_url)
        return a->n_jobs > 0 ? details_url(a->jobs[0]) : NULL;
    if (dispatch->pr > 0)
        return text_format("%s/pr/%" PRId64 "#%s", view->public_url, dispatch->pr, dispatch->repo);
    return text_format("%s/delivery/%s#%s", view->public_url, dispatch->delivery, dispatch->repo);
}

void wanted_check_of_aggregate(const struct aggregate *a, const struct aggregate_view *view,
                               bool past, struct wanted_check *to)
{
    const struct dispatch_view *dispatch = view->dispatch;
    *to = (struct wanted_check){
        .aggregate = true,
        .delivery = dispatch->delivery,
        .may_start = view->required && a->started && !past,
        .past = past,
        .pr = dispatch->pr,
        .completed = !!a->conclusion,
        .status = a->status,
        .conclusion = a->conclusion,
        .name = text_format("crcr/%s", dispatch->repo),
        .external_id = text_format("d:%s:%" PRId64, dispatch->delivery, dispatch->pr),
        .slot = mem_dup(AGGREGATE_SLOT),
        .marker = mem_dup(AGGREGATE_MARKER),
        .details_url = aggregate_url(a, view),
        .title = aggregate_title(a, view),
        .summary = aggregate_summary(a, view, AGGREGATE_MARKER),
    };
    if (dispatch->dispatched_ms > 0)
        clock_format(dispatch->dispatched_ms, to->started_at);
    if (to->completed && a->ended_ms > 0)
        clock_format(a->ended_ms, to->completed_at);
    digest_fill(to);
}

struct check_slot wanted_check_slot(const struct wanted_check *check)
{
    return (struct check_slot){ str_of(check->name), str_of(check->slot) };
}

struct check_slot aggregate_slot(struct buf *name, const char *repo)
{
    buf_reset(name);
    buf_printf(name, "crcr/%s", repo);
    return (struct check_slot){ buf_str(name), STR_LIT(AGGREGATE_SLOT) };
}

/* A check run without any marker is known by its external_id. An aggregate goes on under the next
 * delivery's external_id, so only its marker counts. */
bool wanted_check_is(const struct wanted_check *check, struct str external_id, struct str summary)
{
    bool same = str_find_str(summary, str_of(check->marker)) >= 0;
    bool marked = str_find_str(summary, STR_LIT(MARKER_START)) >= 0;
    if (check->aggregate)
        return same;
    return (same || !marked) && str_is(external_id, check->external_id);
}

void wanted_check_clear(struct wanted_check *check)
{
    char *const texts[] = { check->name,        check->external_id, check->slot,   check->marker,
                            check->details_url, check->title,       check->summary };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        free(texts[i]);
}
