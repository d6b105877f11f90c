#include "check_text.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

#include "../common/base/clock.h"
#include "../common/model/json_member.h"
#include "../common/model/known_failure.h"

#define NAME_BYTES      300 /* of a job's check run */
#define AGGREGATE_BYTES 200 /* of a name in the aggregate's */
#define MESSAGE_BYTES   600
#define STACK_BYTES     1500
#define TESTS_MAX       (CHECK_SUMMARY_MAX - 10000) /* room for what follows the failed tests */
#define JOBS_MAX        (CHECK_SUMMARY_MAX - 1000)  /* room for what follows the jobs */
#define NO_CONCLUSION   "reported without a conclusion"
#define NOTES_MAX       20 /* of runs */
#define KNOWN_START     "<!-- known:"
#define KNOWN_END       "<!-- -->"

bool url_is_plain(struct str url)
{
    if (!str_starts(url, "https://") && !str_starts(url, "http://"))
        return false;
    for (size_t i = 0; i < url.len; i++) {
        unsigned char c = (unsigned char)url.ptr[i];
        if (c <= ' ' || c == 0x7f || c == '<' || c == '>' || c == '"' || c == '\\' || c == '`' ||
            c == '@')
            return false;
    }
    return true;
}

void check_put_code(struct buf *to, struct str text, size_t max)
{
    struct str shown = str_cut(text, max);
    buf_puts(to, "<code>");
    for (size_t i = 0; i < shown.len; i++) {
        unsigned char c = (unsigned char)shown.ptr[i];
        size_t skip = str_turn_at(shown, i);
        if (skip > 0) {
            i += skip - 1;
            continue;
        }
        bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                     c >= 0x80 || c == ' ';
        if (plain)
            buf_putc(to, (char)c);
        else if (c < ' ' || c == 0x7f)
            buf_putc(to, ' ');
        else
            buf_printf(to, "&#%d;", c);
    }
    buf_puts(to, shown.len < text.len ? "…</code>" : "</code>");
}

uint64_t digest_add(uint64_t digest, struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        digest = (digest ^ (unsigned char)text.ptr[i]) * 0x100000001b3u;
    return digest;
}

uint64_t digest_add_text(uint64_t digest, struct str text)
{
    ptrdiff_t start, end;
    while ((start = str_find_str(text, STR_LIT(KNOWN_START))) >= 0) {
        struct str known = str_from(text, (size_t)start);
        if ((end = str_find_str(known, STR_LIT(KNOWN_END))) < 0)
            break;
        digest = digest_add(digest, str_cut(text, (size_t)start));
        digest = digest_add(digest, str_cut(known, (size_t)str_find(known, '>')));
        text = str_from(known, (size_t)end);
    }
    return digest_add(digest, text);
}

void check_put_known(struct buf *to, const struct known_failure *known)
{
    buf_printf(to, KNOWN_START "%s -->", known_reason_name(known->reason));
    known_failure_put(to, known);
    buf_puts(to, KNOWN_END);
}

bool check_put_row(struct buf *to, struct buf *row, size_t max)
{
    bool fits = !buf_full(row) && to->len + row->len <= max;
    if (fits)
        buf_put(to, buf_str(row));
    buf_clear(row);
    return fits;
}

/* "timed_out" as "Timed out". */
static void put_capitalised(struct buf *to, const char *name)
{
    for (size_t i = 0; name[i]; i++) {
        char c = name[i] == '_' ? ' ' : name[i];
        buf_putc(to, (char)(i == 0 && c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c));
    }
}

/* "<separator>3 failed, 118 passed"; what is 0 or unknown is left out. */
static void put_counts(struct buf *to, const char *separator, const struct result_record *job)
{
    const struct {
        int64_t n;
        const char *what;
    } counts[] = { { job->failed, "failed" },
                   { job->passed, "passed" },
                   { job->skipped, "skipped" } };
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        if (counts[i].n > 0) {
            buf_printf(to, "%s%" PRId64 " %s", separator, counts[i].n, counts[i].what);
            separator = ", ";
        }
}

/* "<separator>[what](<url>)", unless the URL is none or not plain: then false. */
static bool put_link(struct buf *to, const char *separator, const char *what, const char *url)
{
    if (!url || !url_is_plain(str_of(url)))
        return false;
    buf_printf(to, "%s[%s](<%s>)", separator, what, url);
    return true;
}

/* ---- of a job ------------------------------------------------------------------------------- */

char *check_title(const struct result_record *job, const char *conclusion)
{
    struct buf title;
    bool without = job->no_conclusion > 0;
    buf_init(&title, 255);
    put_capitalised(&title, conclusion ? conclusion : job_state_name(job->state));
    buf_puts(&title, without ? ": " NO_CONCLUSION : "");
    put_counts(&title, without ? ", " : ": ", job);
    return buf_take(&title, NULL);
}

static void put_tests(struct buf *to, const struct result_record *job)
{
    const int64_t cells[] = { job->total, job->passed, job->failed, job->skipped };
    if (job->total < 0 && job->passed < 0 && job->failed < 0 && job->skipped < 0)
        return;
    buf_puts(to, "\n| Tests | Passed | Failed | Skipped |\n|---:|---:|---:|---:|\n|");
    for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++)
        if (cells[i] < 0)
            buf_puts(to, " – |");
        else
            buf_printf(to, " %" PRId64 " |", cells[i]);
    buf_putc(to, '\n');
}

static void put_seconds(struct buf *to, const char *what, int64_t ms)
{
    if (ms >= 0)
        buf_printf(to, "%s %" PRId64 ".%" PRId64 " s", what, ms / 1000, ms % 1000 / 100);
}

static void put_failed_test(struct buf *to, const json_t *row)
{
    struct str class = json_member(row, "classname"), name = json_member(row, "name");
    struct str message = json_member(row, "message"), stack = json_member(row, "stacktrace");
    buf_puts(to, "- ");
    if (class.len > 0) {
        check_put_code(to, class, NAME_BYTES);
        buf_puts(to, " ");
    }
    check_put_code(to, name, NAME_BYTES);
    if (message.len > 0) {
        buf_puts(to, "<br>");
        check_put_code(to, message, MESSAGE_BYTES);
    }
    if (stack.len > 0) {
        struct str rest = str_cut(stack, STACK_BYTES), line;
        buf_puts(to, "<details><summary>Stack trace</summary>");
        while (str_split(&rest, '\n', &line)) {
            check_put_code(to, line, STACK_BYTES);
            buf_puts(to, "<br>");
        }
        buf_puts(to, "</details>");
    }
    buf_putc(to, '\n');
}

static void put_failed_tests(struct buf *to, const struct result_record *job)
{
    if (!job->failed_tests)
        return;
    json_t *rows = json_loads(job->failed_tests, 0, NULL);
    size_t n = json_array_size(rows), shown = 0;
    buf_puts(to, n > 0 ? "\n### Failed tests\n\n" : "");
    for (; shown < n; shown++) {
        struct buf row;
        buf_init(&row, CHECK_SUMMARY_MAX);
        put_failed_test(&row, json_array_get(rows, shown));
        if (!check_put_row(to, &row, TESTS_MAX))
            break;
    }
    int64_t left = (int64_t)(n - shown) + (job->failed_tests_cut > 0 ? job->failed_tests_cut : 0);
    if (n > 0 && left > 0)
        buf_printf(to, "- … and %" PRId64 " more\n", left);
    json_decref(rows);
}

static void put_verdict(struct buf *to, const struct result_record *job)
{
    if (!job->triage_verdict)
        return;
    json_t *verdict = json_loads(job->triage_verdict, 0, NULL);
    struct str category = json_member(verdict, "category");
    if (category.len > 0) {
        buf_puts(to, "\nThe downstream's own analysis: ");
        check_put_code(to, category, 40);
        buf_puts(to, ", confidence ");
        check_put_code(to, json_member(verdict, "confidence"), 40);
        buf_puts(to, ". ");
        check_put_code(to, json_member(verdict, "summary"), MESSAGE_BYTES);
        buf_putc(to, '\n');
    }
    json_decref(verdict);
}

char *check_summary(const struct result_record *job, const char *marker)
{
    struct buf summary, *to = &summary;
    buf_init(to, CHECK_SUMMARY_MAX);
    buf_puts(to, marker);
    buf_puts(to, "\n");
    check_put_code(to, str_of(job->repo), NAME_BYTES);
    buf_puts(to, " · workflow ");
    check_put_code(to, str_of(job->workflow_name), NAME_BYTES);
    buf_puts(to, " · job ");
    check_put_code(to, str_of(job->job_name), NAME_BYTES);
    buf_puts(to, " · attempt ");
    check_put_code(to, str_of(job->run_attempt), 40);
    if (job->environment) {
        buf_puts(to, " · ");
        check_put_code(to, str_of(job->environment), NAME_BYTES);
    }
    buf_puts(to, "\n");
    if (job->no_conclusion > 0)
        buf_puts(
            to, "\nIt completed and was " NO_CONCLUSION ", which counts as failure. Perhaps a step "
                "failed before it set the output that the report takes the conclusion from.\n");
    if (job->known) {
        buf_puts(to, "\nThis failure: ");
        check_put_known(to, job->known);
        buf_puts(to, ".\n");
    }
    put_tests(to, job);
    if (job->queue_ms >= 0 || job->execution_ms >= 0) {
        buf_putc(to, '\n');
        put_seconds(to, "Waited", job->queue_ms);
        buf_puts(to, job->queue_ms >= 0 && job->execution_ms >= 0 ? ", " : "");
        put_seconds(to, job->queue_ms >= 0 ? "ran" : "Ran", job->execution_ms);
        buf_puts(to, ".\n");
    }
    put_failed_tests(to, job);
    put_verdict(to, job);
    bool log = put_link(to, "\n", "Log", job->run_url);
    put_link(to, log ? " · " : "\n", "Artifacts", job->artifact_url);
    buf_putc(to, '\n');
    return buf_take(to, NULL);
}

/* ---- of the aggregate ------------------------------------------------------------------------ */

static bool is_outcome(const struct aggregate_view *view, enum outcome_kind kind)
{
    return str_is(str_of(view->dispatch->outcome), outcome_kind_name(kind));
}

/* "6 h", "15 min", "90 s" */
static void put_duration(struct buf *to, int64_t ms)
{
    int64_t s = ms / 1000;
    if (s >= 3600 && s % 3600 == 0)
        buf_printf(to, "%" PRId64 " h", s / 3600);
    else if (s >= 60 && s % 60 == 0)
        buf_printf(to, "%" PRId64 " min", s / 60);
    else
        buf_printf(to, "%" PRId64 " s", s);
}

static void put_ended(struct buf *to, const struct aggregate *a, const char *after)
{
    buf_printf(to, "In progress: %zu of %zu %s ended", a->n_ended, a->n_jobs,
               a->n_jobs == 1 ? "job" : "jobs");
    if (a->n_bad > 0)
        buf_printf(to, ", %zu not well", a->n_bad);
    buf_puts(to, after);
}

static void put_completed(struct buf *to, const struct aggregate *a,
                          const struct aggregate_view *view)
{
    put_capitalised(to, a->conclusion);
    if (a->n_bad > 0)
        buf_printf(to, ": %zu of %zu %s not successful%s", a->n_bad, a->n_jobs,
                   a->n_jobs == 1 ? "job" : "jobs",
                   conclusion_is_bad(a->conclusion) ? "" : ", on main too");
    else if (conclusion_is_bad(a->conclusion))
        buf_puts(to, view->more_jobs ? ": there are more jobs than are looked at"
                                     : ": the run did not end well, though its jobs did");
    else
        buf_printf(to, ": %zu %s", a->n_jobs, a->n_jobs == 1 ? "job" : "jobs");
}

char *aggregate_title(const struct aggregate *a, const struct aggregate_view *view)
{
    struct buf title;
    buf_init(&title, 255);
    switch (a->cause) {
    case AGGREGATE_SENT:
        buf_puts(&title, is_outcome(view, OUTCOME_UNKNOWN)
                             ? "Queued: perhaps dispatched, GitHub's answer was not seen"
                             : "Queued: dispatched, no job has reported yet");
        break;
    case AGGREGATE_WAITING:
        buf_puts(&title, "Queued: the dispatch waits");
        break;
    case AGGREGATE_REFUSED:
        buf_puts(&title, "Failure: the dispatch did not get through");
        break;
    case AGGREGATE_DROPPED:
        buf_puts(&title, is_outcome(view, OUTCOME_SUPERSEDED)
                             ? "Cancelled: a newer event of the pull request came first"
                             : "Cancelled: not dispatched");
        break;
    case AGGREGATE_SILENT:
        buf_puts(&title, "Timed out: no job reported within ");
        put_duration(&title, view->silent_ms);
        break;
    case AGGREGATE_BUSY:
        put_ended(&title, a, "");
        break;
    case AGGREGATE_RUN_GOING:
        put_ended(&title, a, "; the run has not");
        break;
    case AGGREGATE_MAY_FOLLOW:
        put_ended(&title, a, "; others may follow");
        break;
    case AGGREGATE_ENDED:
        put_completed(&title, a, view);
        break;
    case AGGREGATE_NOT_REQUIRED:
        buf_puts(&title, "Not required: the back end is not at L4");
        break;
    }
    return buf_take(&title, NULL);
}

static void put_run(struct buf *to, const struct run_sum *run, const struct aggregate_view *view)
{
    if (run->from_github) {
        buf_puts(to, "\nGitHub says that run ");
        check_put_code(to, str_of(run->run_id), AGGREGATE_BYTES);
        buf_puts(to, " came to ");
        check_put_code(to, str_of(run->from_github), AGGREGATE_BYTES);
        buf_puts(to, ".\n");
        return;
    }
    if (!run->refused)
        return;
    bool asked = run->answer && run->answer->said == RUN_SAID_NO;
    buf_printf(to, "\nGitHub %s how run ", asked ? "does not say" : "is not asked");
    check_put_code(to, str_of(run->run_id), AGGREGATE_BYTES);
    buf_puts(to, " ends");
    if (run->answer && run->answer->error[0]) {
        buf_puts(to, " (");
        check_put_code(to, str_of(run->answer->error), sizeof(run->answer->error));
        buf_puts(to, ")");
    }
    buf_puts(to, ": it goes by the jobs alone, once nothing was in progress for ");
    put_duration(to, view->quiet_ms);
    buf_puts(to, ".\n");
}

static void put_job(struct buf *to, const struct result_record *job)
{
    const char *conclusion = job_conclusion(job);
    buf_printf(to, "- **%s** ", conclusion ? conclusion : "in_progress");
    check_put_code(to, str_of(job->workflow_name), AGGREGATE_BYTES);
    buf_puts(to, " / ");
    check_put_code(to, str_of(job->job_name), AGGREGATE_BYTES);
    if (!str_is(str_of(job->run_attempt), "1")) {
        buf_puts(to, " · attempt ");
        check_put_code(to, str_of(job->run_attempt), 40);
    }
    buf_puts(to, job->no_conclusion > 0 ? " · " NO_CONCLUSION : "");
    if (job->known) {
        buf_puts(to, " · ");
        check_put_known(to, job->known);
    }
    put_counts(to, " · ", job);
    put_link(to, " · ", "Log", job->run_url);
    buf_putc(to, '\n');
}

static void put_dispatch(struct buf *to, const struct aggregate_view *view)
{
    const struct dispatch_view *d = view->dispatch;
    char at[CLOCK_TEXT_SIZE];
    check_put_code(to, str_of(d->repo), AGGREGATE_BYTES);
    buf_puts(to, " · delivery ");
    check_put_code(to, str_of(d->delivery), AGGREGATE_BYTES);
    clock_format(d->dispatched_ms > 0 ? d->dispatched_ms : d->at_ms, at);
    buf_printf(to, " · dispatch %s, %s", d->outcome, at);
    if (d->error[0]) {
        buf_puts(to, ": ");
        check_put_code(to, str_of(d->error), sizeof(d->error));
    }
    buf_puts(to, "\n");
}

static void put_cause(struct buf *to, const struct aggregate *a, const struct aggregate_view *view)
{
    if (a->cause == AGGREGATE_SENT || a->cause == AGGREGATE_WAITING) {
        buf_puts(to, "\nWhen no job reports within ");
        put_duration(to, view->silent_ms);
        buf_puts(to, " this ends as timed out.\n");
    }
    if (a->cause == AGGREGATE_MAY_FOLLOW) {
        buf_puts(to, "\nThis CI has not said whether more jobs follow (<code>run_complete</code>): "
                     "it counts as ended when nothing was in progress for ");
        put_duration(to, view->quiet_ms);
        buf_puts(to, ".\n");
    }
    if (a->cause == AGGREGATE_ENDED && a->n_bad > 0 && !conclusion_is_bad(a->conclusion))
        buf_puts(to, "\nEvery job that failed fails on main too: that does not make this fail "
                     "(<code>CRCR_KNOWN_FAILURES</code>).\n");
    if (view->more_jobs)
        buf_printf(to, "\nThere are more jobs than the %zu that are looked at.\n", view->n_jobs);
    if (view->unchecked > 0)
        buf_printf(to,
                   "\n%zu %s no check run of %s own: at most %" PRId64 " of a commit have one.\n",
                   view->unchecked, view->unchecked == 1 ? "job has" : "jobs have",
                   view->unchecked == 1 ? "its" : "their", view->checks_max);
}

char *aggregate_summary(const struct aggregate *a, const struct aggregate_view *view,
                        const char *marker)
{
    struct buf summary, *to = &summary;
    size_t shown = 0;
    buf_init(to, CHECK_SUMMARY_MAX);
    buf_puts(to, marker);
    buf_puts(to, "\n");
    put_dispatch(to, view);
    put_cause(to, a, view);
    for (size_t i = 0; i < a->n_runs && i < NOTES_MAX; i++)
        put_run(to, &a->runs[i], view);
    buf_puts(to, a->n_jobs > 0 ? "\n### Jobs\n\n" : "");
    for (; shown < a->n_jobs; shown++) {
        struct buf line;
        buf_init(&line, CHECK_SUMMARY_MAX);
        put_job(&line, a->jobs[shown]);
        if (!check_put_row(to, &line, JOBS_MAX))
            break;
    }
    if (shown < a->n_jobs)
        buf_printf(to, "- … and %zu more\n", a->n_jobs - shown);
    if (a->n_replaced > 0)
        buf_printf(to, "\n%zu %s of runs that newer ones replaced %s not counted.\n", a->n_replaced,
                   a->n_replaced == 1 ? "job" : "jobs", a->n_replaced == 1 ? "is" : "are");
    return buf_take(to, NULL);
}
