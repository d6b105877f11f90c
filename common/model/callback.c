#include "callback.h"

#include <stdlib.h>
#include <string.h>

#include "../base/clock.h"
#include "../base/mem.h"
#include "callback_parts.h"
#include "ids.h"
#include "json_scan.h"

/* ---- states and conclusions --------------------------------------------------------------------
 */

static const char *const state_names[] = {
    [JOB_NONE] = "none",
    [JOB_DISPATCHED] = "dispatched",
    [JOB_IN_PROGRESS] = "in_progress",
    [JOB_TIMED_OUT] = "timed_out",
    [JOB_COMPLETED] = "completed",
};

const char *job_state_name(enum job_state state)
{
    return state_names[state];
}

enum job_state job_state_of(struct str name)
{
    for (size_t i = 0; i < sizeof(state_names) / sizeof(state_names[0]); i++)
        if (str_is(name, state_names[i]))
            return (enum job_state)i;
    return JOB_NONE;
}

const char *const conclusions[] = { "success",         "failure", "cancelled",
                                    "timed_out",       "neutral", "skipped",
                                    "action_required", "stale",   NULL };

bool conclusion_valid(struct str s)
{
    for (size_t i = 0; conclusions[i]; i++)
        if (str_is(s, conclusions[i]))
            return true;
    return false;
}

bool callback_is_self(const struct callback *c)
{
    return strcmp(c->event_type, "nightly") == 0 || strcmp(c->event_type, "periodic") == 0;
}

void callback_clear(struct callback *c)
{
    free(c->failed_tests);
    free(c->triage_verdict);
    c->failed_tests = c->triage_verdict = NULL;
}

/* ---- fields ------------------------------------------------------------------------------------
 */

struct reading {
    struct callback *c;
    struct failed_tests tests;
    char status[16];
    int64_t counts[4]; /* passed, failed, skipped, total; -1: not told */
    struct why *why;
    enum err err;
};

/* What a text field takes and what happens to a value that it does not take. */
enum takes {
    TEXT,    /* a string; anything else but null is refused, so is one too long */
    ID,      /* a string or a number, kept as written; else as TEXT */
    INFO,    /* a string, cut; anything else is passed over */
    INSTANT, /* RFC 3339, from 1970 to 2099; anything else is passed over */
    LINK,    /* an http(s) URL; anything else is passed over */
};
struct field {
    const char *path;
    enum takes takes;
    size_t at, size;
};
#define FIELD(path, takes, member)                                                                 \
    {                                                                                              \
        path, takes, offsetof(struct callback, member), sizeof(((struct callback *)0)->member)     \
    }
static const struct field fields[] = {
    FIELD("event_type", TEXT, event_type),
    FIELD("delivery_id", TEXT, delivery_id),
    FIELD("callback_token", TEXT, callback_token),
    FIELD("workflow.conclusion", TEXT, conclusion),
    FIELD("workflow.name", ID, workflow_name),
    FIELD("workflow.job_name", ID, job_name),
    FIELD("workflow.run_id", ID, run_id),
    FIELD("workflow.run_attempt", ID, run_attempt),
    FIELD("workflow.check_run_id", ID, check_run_id),
    FIELD("workflow.url", LINK, url),
    FIELD("workflow.artifact_url", LINK, artifact_url),
    FIELD("workflow.started_at", INSTANT, started_at),
    FIELD("workflow.completed_at", INSTANT, completed_at),
    FIELD("workflow.environment", INFO, environment),
};
#define N_FIELDS (sizeof(fields) / sizeof(fields[0]))

static bool is_link(struct str url)
{
    for (size_t i = 0; i < url.len; i++)
        if ((unsigned char)url.ptr[i] <= ' ' || url.ptr[i] == 0x7f)
            return false;
    return str_starts(url, "https://") || str_starts(url, "http://");
}

/* From 1970 up to 2100: GitHub and ClickHouse refuse, or misread, what lies far outside. */
static bool is_instant(struct str text)
{
    int64_t ms;
    return !clock_parse(text, &ms, NULL) && ms >= 0 && ms < INT64_C(4102444800000);
}

static bool is_integer(struct str number)
{
    int64_t value;
    return str_to_i64(number, &value) && value >= 0;
}

static bool on_field(void *opaque, size_t want, enum json_type type, struct str text, size_t index)
{
    struct reading *r = opaque;
    const struct field *f = &fields[want];
    char *to = (char *)r->c + f->at;
    bool is_text = type == JSON_SCAN_STRING;
    (void)index;
    if (type == JSON_SCAN_NULL)
        return true;
    if (f->takes == INFO && is_text)
        text = str_cut(text, f->size - 1);
    if ((f->takes == INFO && !is_text) || (f->takes == LINK && (!is_text || !is_link(text))) ||
        (f->takes == INSTANT && (!is_text || !is_instant(text))))
        return true;
    if (!is_text && !(f->takes == ID && type == JSON_SCAN_NUMBER && is_integer(text))) {
        r->err = why_set(r->why, ERR_REFUSE, "%s must be a string%s", f->path,
                         f->takes == ID ? " or a whole number from 0" : "");
        return false;
    }
    if (str_copy(to, f->size, text) || f->takes == LINK || f->takes == INSTANT)
        return true;
    r->err = why_set(r->why, ERR_REFUSE, "%s has %zu bytes; at most %zu are accepted", f->path,
                     text.len, f->size - 1);
    return false;
}

/* ---- what is no text field ---------------------------------------------------------------------
 */

static bool on_status(void *opaque, size_t want, enum json_type type, struct str text, size_t index)
{
    struct reading *r = opaque;
    (void)want, (void)index;
    if (type != JSON_SCAN_STRING || !str_copy(r->status, sizeof(r->status), text))
        r->status[0] = '\0';
    r->c->status = job_state_of(str_of(r->status));
    return true;
}

static bool on_run_complete(void *opaque, size_t want, enum json_type type, struct str text,
                            size_t index)
{
    struct reading *r = opaque;
    (void)want, (void)index;
    r->c->run_complete =
        type == JSON_SCAN_TRUE || (type == JSON_SCAN_STRING && str_is(text, "true"));
    return true;
}

static bool on_verdict(void *opaque, size_t want, enum json_type type, struct str text,
                       size_t index)
{
    struct reading *r = opaque;
    (void)want, (void)index;
    if (type == JSON_SCAN_OBJECT && !r->c->triage_verdict)
        r->c->triage_verdict = triage_verdict_read(text);
    return true;
}

static const char *const count_paths[] = {
    "workflow.test_results.passed",
    "workflow.test_results.failed",
    "workflow.test_results.skipped",
    "workflow.test_results.total",
};
#define N_COUNTS (sizeof(count_paths) / sizeof(count_paths[0]))

static const char *const row_paths[FAILED_TEST_MEMBERS] = {
    [FAILED_TEST_NAME] = "workflow.failed_tests_detail[].name",
    [FAILED_TEST_CLASSNAME] = "workflow.failed_tests_detail[].classname",
    [FAILED_TEST_MESSAGE] = "workflow.failed_tests_detail[].message",
    [FAILED_TEST_STACKTRACE] = "workflow.failed_tests_detail[].stacktrace",
    [FAILED_TEST_DURATION] = "workflow.failed_tests_detail[].duration",
};

/* The order of the wants in a scan. */
enum {
    WANT_COUNT = N_FIELDS,
    WANT_ROW = WANT_COUNT + N_COUNTS,
    WANT_ROW_END = WANT_ROW + FAILED_TEST_MEMBERS,
    WANT_STATUS,
    WANT_RUN_COMPLETE,
    WANT_VERDICT,
    N_WANTS
};

/* More than a billion tests is a mistake, and sums stay far from overflow. */
static bool on_count(void *opaque, size_t want, enum json_type type, struct str text, size_t index)
{
    struct reading *r = opaque;
    int64_t n;
    (void)index;
    if ((type == JSON_SCAN_NUMBER || type == JSON_SCAN_STRING) && str_to_i64(text, &n) && n >= 0 &&
        n <= 1000000000)
        r->counts[want - WANT_COUNT] = n;
    return true;
}

static bool on_row_member(void *opaque, size_t want, enum json_type type, struct str text,
                          size_t index)
{
    struct reading *r = opaque;
    (void)index;
    failed_tests_member(&r->tests, (enum failed_test_member)(want - WANT_ROW), type, text);
    return true;
}

static bool on_row_end(void *opaque, size_t want, enum json_type type, struct str text,
                       size_t index)
{
    struct reading *r = opaque;
    (void)want, (void)type, (void)text, (void)index;
    failed_tests_row_end(&r->tests);
    return true;
}

static enum err scan(struct reading *r, struct str body)
{
    static const struct json_rules rules = { .reject_duplicates = true,
                                             .max_members = CALLBACK_MAX_MEMBERS,
                                             .must_be_object = true };
    struct json_want wants[N_WANTS];
    for (size_t i = 0; i < N_FIELDS; i++)
        wants[i] = (struct json_want){ fields[i].path, on_field };
    for (size_t i = 0; i < N_COUNTS; i++)
        wants[WANT_COUNT + i] = (struct json_want){ count_paths[i], on_count };
    for (size_t i = 0; i < FAILED_TEST_MEMBERS; i++)
        wants[WANT_ROW + i] = (struct json_want){ row_paths[i], on_row_member };
    wants[WANT_ROW_END] = (struct json_want){ "workflow.failed_tests_detail[]", on_row_end };
    wants[WANT_STATUS] = (struct json_want){ "workflow.status", on_status };
    wants[WANT_RUN_COMPLETE] = (struct json_want){ "workflow.run_complete", on_run_complete };
    wants[WANT_VERDICT] = (struct json_want){ "workflow.triage_verdict", on_verdict };
    enum err err = json_scan(body, &rules, wants, N_WANTS, r, r->why);
    return err ? err : r->err;
}

/* ---- the rules of behaviour.md, step 6 ---------------------------------------------------------
 */

/* An id is shown, compared and put into URLs: no blanks, no controls. */
static bool is_id(const char *id)
{
    for (size_t i = 0; id[i]; i++)
        if ((unsigned char)id[i] <= ' ' || id[i] == 0x7f)
            return false;
    return *id;
}

static bool is_zero(const char *id)
{
    return *id && strspn(id, "0") == strlen(id);
}

static enum err check_ids(const struct callback *c, struct why *why)
{
    if (!delivery_valid(str_of(c->delivery_id)))
        return why_set(why, ERR_REFUSE,
                       "delivery_id is %s; accepted are 1 to 64 letters, digits and hyphens",
                       c->delivery_id[0] ? "malformed" : "missing");
    if (!c->workflow_name[0])
        return why_set(why, ERR_REFUSE, "workflow.name is missing; accepted is a string");
    if (!is_id(c->run_id) || is_zero(c->run_id))
        return why_set(why, ERR_REFUSE,
                       "workflow.run_id is %s; accepted is a number from 1 or a string without "
                       "blanks",
                       !c->run_id[0]        ? "missing"
                       : is_zero(c->run_id) ? "0"
                                            : "malformed");
    if (c->run_attempt[0] && !is_id(c->run_attempt))
        return why_set(why, ERR_REFUSE,
                       "workflow.run_attempt is malformed; accepted is a number "
                       "or a string without blanks");
    if (c->check_run_id[0] && !is_id(c->check_run_id))
        return why_set(why, ERR_REFUSE,
                       "workflow.check_run_id is malformed; accepted is a number "
                       "or a string without blanks");
    return OK;
}

static enum err check_state(struct callback *c, struct why *why)
{
    if (c->status != JOB_IN_PROGRESS && c->status != JOB_COMPLETED)
        return why_set(why, ERR_REFUSE,
                       "workflow.status is missing or unknown; accepted are in_progress and "
                       "completed");
    if (callback_is_self(c) && c->status != JOB_COMPLETED)
        return why_set(why, ERR_REFUSE, "workflow.status of a %s report must be completed",
                       c->event_type);
    if (c->status == JOB_IN_PROGRESS) {
        c->conclusion[0] = '\0'; /* it has none yet, whatever is told */
        return OK;
    }
    if (conclusion_valid(str_of(c->conclusion)) || (!c->conclusion[0] && callback_is_self(c)))
        return OK;
    return why_set(why, ERR_REFUSE,
                   "workflow.conclusion is %s; accepted are success, failure, cancelled, "
                   "timed_out, neutral, skipped, action_required and stale",
                   c->conclusion[0] ? "unknown" : "missing");
}

static void set_defaults(struct reading *r, struct str attempt)
{
    struct callback *c = r->c;
    const int64_t *n = r->counts;
    if (!c->job_name[0])
        str_copy(c->job_name, sizeof(c->job_name), str_of(c->workflow_name));
    if (!c->run_attempt[0] &&
        (attempt.len == 0 || !str_copy(c->run_attempt, sizeof(c->run_attempt), attempt)))
        strcpy(c->run_attempt, "1");
    if (!c->check_run_id[0] || is_zero(c->check_run_id)) {
        size_t len = strlen(c->run_id);
        memcpy(c->check_run_id, c->run_id, len);
        c->check_run_id[len] = '-';
        strcpy(c->check_run_id + len + 1, c->run_attempt);
    }
    c->has_tests = n[0] >= 0 || n[1] >= 0 || n[2] >= 0 || n[3] >= 0;
    c->passed = n[0] > 0 ? n[0] : 0;
    c->failed = n[1] > 0 ? n[1] : 0;
    c->skipped = n[2] > 0 ? n[2] : 0;
    c->total = n[3] >= 0 ? n[3] : c->passed + c->failed + c->skipped;
}

enum err callback_parse(struct str body, struct str attempt, struct callback *ret, struct why *why)
{
    memset(ret, 0, sizeof(*ret));
    struct reading r = { .c = ret, .counts = { -1, -1, -1, -1 }, .why = why };
    failed_tests_init(&r.tests);
    enum err err = scan(&r, body);
    if (!err)
        err = check_state(ret, why);
    if (!err)
        err = check_ids(ret, why);
    if (err) {
        callback_clear(ret);
    } else {
        set_defaults(&r, attempt);
        ret->failed_tests = failed_tests_take(&r.tests);
        ret->failed_tests_cut = r.tests.left_out;
    }
    failed_tests_clear(&r.tests);
    return err;
}
