#include "known_failure.h"

#include <inttypes.h>
#include <stdlib.h>

#include "../base/mem.h"
#include "../base/table.h"
#include "limits.h"
#include "since.h"
#include "which_jobs.h"

#define SHA_SHOWN 10

/* A job that failed on a pull request. */
struct failed_on {
    const struct known_failure *job; /* in jobs */
    int64_t pr, at_ms;
};
struct known_failures {
    struct table jobs; /* of each job by its name: what is the same on all pull requests */
    struct failed_on *failed;
    size_t n_failed;
    int64_t oldest_ms; /* of the jobs that were looked at */
};

/* ---- the sentence ---------------------------------------------------------------------------- */

const char *known_reason_name(enum known_reason reason)
{
    static const char *const names[] = {
        [KNOWN_MAIN] = "main",
        [KNOWN_FLAKY] = "flaky",
        [KNOWN_OTHERS] = "other_pull_requests",
        [KNOWN_ONLY_HERE] = "only_here",
    };
    return names[reason];
}

/* "45 s", "5 min", "3 h", "2 d" */
static void age_put(struct buf *to, int64_t ms)
{
    int64_t s = ms / 1000;
    bool days = s >= 48 * 3600, hours = s >= 3600, minutes = s >= 60;
    int64_t unit_s = days ? 86400 : hours ? 3600 : minutes ? 60 : 1;
    buf_printf(to, "%" PRId64 " %s", s / unit_s, days ? "d" : hours ? "h" : minutes ? "min" : "s");
}

void known_failure_put(struct buf *to, const struct known_failure *known)
{
    int64_t before_ms = known->failed_ms - known->since_ms;
    switch (known->reason) {
    case KNOWN_MAIN:
        buf_printf(to, "fails on main too, since %.*s%s, ", SHA_SHOWN, known->since_sha,
                   known->or_earlier ? " or earlier" : "");
        age_put(to, before_ms < 0 ? -before_ms : before_ms);
        buf_puts(to, before_ms < 0 ? " after this job" : " before this job");
        break;
    case KNOWN_FLAKY:
        buf_printf(to, "flaky: passed and failed on the same commit, %zu of %zu commits",
                   known->flaky, known->commits);
        break;
    case KNOWN_OTHERS:
        buf_printf(to, "fails on %zu other pull request%s in 24 h", known->others,
                   known->others == 1 ? "" : "s");
        break;
    case KNOWN_ONLY_HERE:
        buf_puts(to, "only here");
        break;
    }
}

/* ---- what the jobs of a downstream say ------------------------------------------------------- */

static struct known_failure *of_job(struct known_failures *all, const struct result_record *job)
{
    struct buf CLEANUP(buf_clear) key = BUF_INIT(2 * NAME_MAX_BYTES + 1);
    buf_put(&key, str_of(job->workflow_name));
    buf_putc(&key, '\0');
    buf_put(&key, str_of(job->job_name));
    return table_make(&all->jobs, buf_str(&key));
}

static void since_take(struct known_failures *all, const struct since *since)
{
    for (size_t i = 0; i < since->n_failing; i++) {
        const struct since_row *row = &since->failing[i];
        if (result_record_is_self(row->first_red.red))
            continue;
        struct known_failure *job = of_job(all, row->first_red.red);
        (void)str_copy(job->since_sha, sizeof(job->since_sha), str_of(row->first_red.sha));
        job->since_ms = row->first_red.at_ms;
        job->or_earlier = !row->last_green.sha;
    }
    for (size_t i = 0; i < since->n_flaky; i++) {
        const struct flaky_row *row = &since->flaky[i];
        if (result_record_is_self(row->red))
            continue;
        struct known_failure *job = of_job(all, row->red);
        job->flaky = row->flaky;
        job->commits = row->commits;
    }
}

struct known_failures *known_failures_new(const struct result_record *jobs, size_t n,
                                          const struct main_list *main)
{
    struct known_failures *all = mem_alloc(1, sizeof(*all));
    struct since since;
    *all = (struct known_failures){ .jobs.size = sizeof(struct known_failure),
                                    .failed = mem_alloc(n + 1, sizeof(*all->failed)) };
    since_init(&since, jobs, n, main);
    since_take(all, &since);
    since_clear(&since);
    for (size_t i = 0; i < n; i++) {
        int64_t at_ms = job_last_ms(&jobs[i]);
        if (i == 0 || at_ms < all->oldest_ms)
            all->oldest_ms = at_ms;
        if (known_failure_applies(&jobs[i]) && !jobs[i].replaced)
            all->failed[all->n_failed++] =
                (struct failed_on){ of_job(all, &jobs[i]), jobs[i].pr_number, at_ms };
    }
    return all;
}

void known_failures_free(struct known_failures *all)
{
    if (!all)
        return;
    table_clear(&all->jobs);
    free(all->failed);
    free(all);
}

/* ---- one job --------------------------------------------------------------------------------- */

bool known_failure_applies(const struct result_record *job)
{
    return job->pr_number > 0 && !result_record_is_self(job) && job_has_failed(job);
}

/* How many other pull requests it fails on; of: that job in all. */
static size_t others_count(const struct known_failures *all, const struct known_failure *of,
                           int64_t pr, int64_t at_ms)
{
    struct table prs = { .size = 1 };
    for (const struct failed_on *f = all->failed; f < all->failed + all->n_failed; f++)
        if (f->job == of && f->pr != pr && f->at_ms >= at_ms - KNOWN_WITHIN_MS &&
            f->at_ms <= at_ms + KNOWN_WITHIN_MS)
            (void)table_make(&prs, STR_NUMBER(f->pr));
    size_t n = table_count(&prs);
    table_clear(&prs);
    return n;
}

struct known_failure *known_failure_new(struct known_failures *all, const struct result_record *job)
{
    const struct known_failure *of = of_job(all, job);
    int64_t at_ms = job_last_ms(job);
    if (at_ms < all->oldest_ms)
        return NULL;
    struct known_failure *known = mem_alloc(1, sizeof(*known));
    *known = *of;
    known->failed_ms = at_ms;
    known->others = others_count(all, of, job->pr_number, at_ms);
    known->reason = known->since_sha[0] ? KNOWN_MAIN
                    : known->flaky      ? KNOWN_FLAKY
                    : known->others     ? KNOWN_OTHERS
                                        : KNOWN_ONLY_HERE;
    return known;
}
