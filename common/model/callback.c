#include "callback.h"

#include <stdlib.h>
#include <string.h>

#include "../base/clock.h"
#include "../base/json_put.h"
#include "../base/mem.h"
#include "callback_warnings.h"
#include "ids.h"
#include "json_scan.h"
#include "triage_verdict.h"

bool callback_is_self(const struct callback *c)
{
    return strcmp(c->event_type, "nightly") == 0 || strcmp(c->event_type, "periodic") == 0;
}

const char *callback_commit(const struct callback *c)
{
    if (!callback_is_self(c))
        return "";
    for (size_t i = 0; i < sizeof(c->commits) / sizeof(c->commits[0]); i++)
        if (c->commits[i][0])
            return c->commits[i];
    return commit_valid(str_of(c->delivery_id)) ? c->delivery_id : "";
}

void callback_clear(struct callback *c)
{
    free(c->failed_tests);
    free(c->triage_verdict);
    free(c->warnings);
    c->failed_tests = c->triage_verdict = c->warnings = NULL;
}

/* ---- fields -------------------------------------------------------------------------- */

struct body_parse {
    struct callback *c;
    struct buf rows;   /* of failed_tests_detail: a JSON array without its closing bracket */
    struct buf row;    /* members of the row that is being read */
    bool row_is_named; /* that row has a name */
    size_t n_rows;
    int64_t rows_left_out;
    char status[16];
    int64_t counts[4]; /* passed, failed, skipped, total; -1: not reported */
    struct callback_warnings warnings;
    struct why *why;
    enum err err;
};

/* What a text field takes and what happens to a value that it does not take. Texts with control or
 * bidirectional characters are never taken. */
enum takes {
    TEXT,    /* a string; anything else but null is refused, so is one too long */
    ID,      /* a string or a number, kept as written; else as TEXT */
    INFO,    /* a string, cut; anything else is left out */
    INSTANT, /* RFC 3339, from 1970 to 2099; anything else is left out */
    LINK,    /* an https URL; anything else is left out */
    COMMIT,  /* 40 or 64 hex digits; anything else is left out */
};
/* Of those that may be left out; NULL: without a warning. */
static const char *const taken[COMMIT + 1] = {
    [INFO] = "a string without control characters",
    [INSTANT] = "a time in RFC 3339 from 1970 to 2099",
    [LINK] = "an https:// URL without blanks, of at most 2048 bytes",
};
struct callback_field {
    const char *path;
    enum takes takes;
    size_t at, size;
};
#define FIELD(path, takes, member)                                                                 \
    {                                                                                              \
        path, takes, offsetof(struct callback, member), sizeof(((struct callback *)0)->member)     \
    }
static const struct callback_field fields[] = {
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
    FIELD("payload.head_sha", COMMIT, commits[0]),
    FIELD("payload.after", COMMIT, commits[1]),
    FIELD("pytorch_head_sha", COMMIT, commits[2]),
};
#define N_FIELDS (sizeof(fields) / sizeof(fields[0]))

#define CONCLUSIONS_ACCEPTED                                                                       \
    "; accepted are success, failure, cancelled, timed_out, neutral, skipped, action_required "    \
    "and stale"

static bool is_link(struct str url)
{
    return str_starts(url, "https://") && str_find(url, ' ') < 0;
}

/* It looks as what it is: also on a page, in a log and in a terminal. */
static bool is_plain(struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (str_control_at(text, i) || str_turn_at(text, i))
            return false;
    return true;
}

/* From 1970 up to 2100: GitHub and ClickHouse refuse, or misread, what lies far outside. */
static bool is_instant(struct str text)
{
    int64_t ms;
    return !clock_parse(text, &ms, NULL) && ms >= 0 && ms < INT64_C(4102444800000);
}

/* Not worth a warning. */
static bool is_absent(enum json_type type, struct str text)
{
    return type == JSON_SCAN_NULL || (type == JSON_SCAN_STRING && text.len == 0);
}

static bool on_field(void *opaque, size_t want, enum json_type type, struct str text, size_t index)
{
    struct body_parse *r = opaque;
    const struct callback_field *f = &fields[want];
    char *to = (char *)r->c + f->at;
    bool is_text = type == JSON_SCAN_STRING, plain = !is_text || is_plain(text);
    int64_t number;
    (void)index;
    if (type == JSON_SCAN_NULL)
        return true;
    if ((f->takes == INFO && (!is_text || !plain)) ||
        (f->takes == LINK && (!is_text || !plain || !is_link(text) || text.len >= f->size)) ||
        (f->takes == INSTANT && (!is_text || !is_instant(text) || text.len >= f->size)) ||
        (f->takes == COMMIT && (!is_text || !commit_valid(text)))) {
        if (taken[f->takes] && !is_absent(type, text))
            callback_warn(&r->warnings, "%s is not %s: left out", f->path, taken[f->takes]);
        return true;
    }
    if (f->takes == INFO && text.len >= f->size) {
        callback_warn(&r->warnings, "%s has %zu bytes: cut to %zu", f->path, text.len, f->size - 1);
        text = str_cut(text, f->size - 1);
    }
    if (!is_text && !(f->takes == ID && type == JSON_SCAN_NUMBER && str_to_i64(text, &number) &&
                      text.ptr[0] != '-')) { /* -0 is 0 to some, and text of its own to others */
        r->err = why_set(r->why, ERR_REFUSE, "%s must be a string%s", f->path,
                         f->takes == ID ? " or a whole number from 0"
                         : f->at == offsetof(struct callback, conclusion) ? CONCLUSIONS_ACCEPTED
                                                                          : "");
        return false;
    }
    if (!plain) {
        r->err = why_set(r->why, ERR_REFUSE,
                         "%s has a control or bidirectional character; none is accepted", f->path);
        return false;
    }
    if (str_copy(to, f->size, text))
        return true;
    r->err = why_set(r->why, ERR_REFUSE, "%s has %zu bytes; at most %zu are accepted", f->path,
                     text.len, f->size - 1);
    return false;
}

/* ---- what is no text field ----------------------------------------------------------- */

static bool on_status(void *opaque, size_t want, enum json_type type, struct str text, size_t index)
{
    struct body_parse *r = opaque;
    (void)want, (void)index;
    if (type != JSON_SCAN_STRING || !str_copy(r->status, sizeof(r->status), text))
        r->status[0] = '\0';
    r->c->status = job_state_of(str_of(r->status));
    return true;
}

static bool on_run_complete(void *opaque, size_t want, enum json_type type, struct str text,
                            size_t index)
{
    struct body_parse *r = opaque;
    (void)want, (void)index;
    r->c->run_complete =
        type == JSON_SCAN_TRUE || (type == JSON_SCAN_STRING && str_is(text, "true"));
    if (!r->c->run_complete && type != JSON_SCAN_FALSE && !is_absent(type, text) &&
        !(type == JSON_SCAN_STRING && str_is(text, "false")))
        callback_warn(&r->warnings, "workflow.run_complete is neither true nor false: left out");
    return true;
}

static bool on_verdict(void *opaque, size_t want, enum json_type type, struct str text,
                       size_t index)
{
    struct body_parse *r = opaque;
    (void)want, (void)index;
    struct buf CLEANUP(buf_clear) plain = BUF_INIT(text.len);
    if (type == JSON_SCAN_OBJECT && !r->c->triage_verdict) {
        json_replace_nul(&plain, text, STR_LIT("\\ufffd"));
        r->c->triage_verdict = triage_verdict_read(buf_str(&plain));
    }
    if (!r->c->triage_verdict && !is_absent(type, text))
        callback_warn(&r->warnings, "workflow.triage_verdict is not as described: left out");
    return true;
}

static const char *const count_paths[] = {
    "workflow.test_results.passed",
    "workflow.test_results.failed",
    "workflow.test_results.skipped",
    "workflow.test_results.total",
};
#define N_COUNTS (sizeof(count_paths) / sizeof(count_paths[0]))

#define ROWS_MAX      1000
#define ROW_MAX_BYTES (64u << 10) /* escapes make a character up to six times as long */
#define ROWS          "workflow.failed_tests_detail[]"

/* A text is cut to so many bytes; a duration is a number and is kept as written or not at all. */
static const struct {
    const char *name, *path;
    size_t max_bytes;
    enum json_type type;
} row_members[] = {
    { "name", ROWS ".name", 1024, JSON_SCAN_STRING }, /* the first: a row needs one */
    { "classname", ROWS ".classname", 1024, JSON_SCAN_STRING },
    { "message", ROWS ".message", 1024, JSON_SCAN_STRING },
    { "stacktrace", ROWS ".stacktrace", 4096, JSON_SCAN_STRING },
    { "duration", ROWS ".duration", 32, JSON_SCAN_NUMBER },
};
#define N_ROW_MEMBERS (sizeof(row_members) / sizeof(row_members[0]))

/* The order of the wants in a scan. */
enum {
    WANT_COUNT = N_FIELDS,
    WANT_ROW = WANT_COUNT + N_COUNTS,
    WANT_ROW_END = WANT_ROW + N_ROW_MEMBERS,
    WANT_STATUS,
    WANT_RUN_COMPLETE,
    WANT_VERDICT,
    WANT_COUNTS,
    WANT_LIST,
    N_WANTS
};

static bool on_holder(void *opaque, size_t want, enum json_type type, struct str text, size_t index)
{
    struct body_parse *r = opaque;
    (void)index;
    bool is_list = want == WANT_LIST;
    if (!is_absent(type, text) && type != (is_list ? JSON_SCAN_ARRAY : JSON_SCAN_OBJECT))
        callback_warn(&r->warnings, "workflow.%s is no %s: left out",
                      is_list ? "failed_tests_detail" : "test_results",
                      is_list ? "array" : "object");
    return true;
}

/* The payload is the upstream's, and is not looked into. */
static void on_unknown(void *opaque, struct str object, struct str name)
{
    struct body_parse *r = opaque;
    if (!str_is(object, "payload.") && !(object.len == 0 && str_is(name, "payload_trimmed")) &&
        !(str_is(object, "workflow.") && str_is(name, "schema_version")))
        callback_warn(&r->warnings, "%.*s%.*s is not known: left out", STR_ARG(object),
                      STR_ARG(str_cut(name, 64)));
}

/* More than a billion tests is a mistake, and sums stay far from overflow. */
static bool on_count(void *opaque, size_t want, enum json_type type, struct str text, size_t index)
{
    struct body_parse *r = opaque;
    int64_t n;
    (void)index;
    if ((type == JSON_SCAN_NUMBER || type == JSON_SCAN_STRING) && str_to_i64(text, &n) && n >= 0 &&
        n <= 1000000000)
        r->counts[want - WANT_COUNT] = n;
    else if (!is_absent(type, text))
        callback_warn(&r->warnings, "%s is not a whole number from 0 to 1000000000: left out",
                      count_paths[want - WANT_COUNT]);
    return true;
}

/* The members of a row come first, then its end. */
static bool on_row_member(void *opaque, size_t want, enum json_type type, struct str text,
                          size_t index)
{
    struct body_parse *r = opaque;
    size_t m = want - WANT_ROW, max_bytes = row_members[m].max_bytes;
    bool is_number = row_members[m].type == JSON_SCAN_NUMBER;
    (void)index;
    if (r->n_rows == ROWS_MAX)
        return true;
    if (type != row_members[m].type || (is_number && text.len > max_bytes)) {
        if (!is_absent(type, text))
            callback_warn(&r->warnings, "%s is no %s: left out", row_members[m].path,
                          is_number ? "number of at most 32 bytes" : "string");
        return true;
    }
    if (text.len > max_bytes)
        callback_warn(&r->warnings, "%s is longer than %zu bytes: cut", row_members[m].path,
                      max_bytes);
    if (!r->row.len)
        buf_putc(&r->row, '{');
    json_put_name(&r->row, row_members[m].name);
    if (is_number)
        buf_put(&r->row, text);
    else
        json_quote(&r->row, str_cut(text, max_bytes));
    r->row_is_named = r->row_is_named || (m == 0 && text.len > 0);
    return true;
}

/* A row without a name says nothing that anyone could look for. */
static bool on_row_end(void *opaque, size_t want, enum json_type type, struct str text,
                       size_t index)
{
    struct body_parse *r = opaque;
    (void)want, (void)type, (void)text, (void)index;
    if (r->n_rows < ROWS_MAX && r->row_is_named) {
        buf_putc(&r->rows, r->n_rows ? ',' : '[');
        buf_put(&r->rows, buf_str(&r->row));
        buf_putc(&r->rows, '}');
        r->n_rows++;
    } else {
        r->rows_left_out++;
    }
    buf_reset(&r->row);
    r->row_is_named = false;
    return true;
}

static enum err scan(struct body_parse *r, struct str body)
{
    static const struct json_rules rules = { .reject_duplicates = true,
                                             .max_members = CALLBACK_MAX_MEMBERS,
                                             .nul_in_others = true,
                                             .unknown = on_unknown };
    struct json_want wants[N_WANTS];
    for (size_t i = 0; i < N_FIELDS; i++)
        wants[i] = (struct json_want){ .path = fields[i].path, .found = on_field };
    for (size_t i = 0; i < N_COUNTS; i++)
        wants[WANT_COUNT + i] = (struct json_want){ .path = count_paths[i], .found = on_count };
    for (size_t i = 0; i < N_ROW_MEMBERS; i++)
        wants[WANT_ROW + i] = (struct json_want){ .path = row_members[i].path,
                                                  .found = on_row_member,
                                                  .free_text = true };
    wants[WANT_ROW_END] = (struct json_want){ .path = ROWS, .found = on_row_end };
    wants[WANT_STATUS] = (struct json_want){ .path = "workflow.status", .found = on_status };
    wants[WANT_RUN_COMPLETE] =
        (struct json_want){ .path = "workflow.run_complete", .found = on_run_complete };
    wants[WANT_VERDICT] =
        (struct json_want){ .path = "workflow.triage_verdict", .found = on_verdict };
    wants[WANT_COUNTS] = (struct json_want){ "workflow.test_results", on_holder, true };
    wants[WANT_LIST] = (struct json_want){ "workflow.failed_tests_detail", on_holder, true };
    enum err err = json_scan(body, &rules, wants, N_WANTS, r, r->why);
    return err ? err : r->err;
}

/* ---- the rules of the fields --------------------------------------------------------- */

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

static enum err check_state(struct body_parse *r, struct why *why)
{
    struct callback *c = r->c;
    if (c->status != JOB_IN_PROGRESS && c->status != JOB_COMPLETED)
        return why_set(why, ERR_REFUSE,
                       "workflow.status is missing or unknown; accepted are in_progress and "
                       "completed");
    if (callback_is_self(c) && c->status != JOB_COMPLETED)
        return why_set(why, ERR_REFUSE, "workflow.status of a %s report must be completed",
                       c->event_type);
    if (c->status == JOB_IN_PROGRESS) {
        c->conclusion[0] = '\0'; /* it has none yet, whatever is reported */
        return OK;
    }
    if (!c->conclusion[0] &&
        !callback_is_self(c)) { /* the step that sets it has failed, or one before */
        callback_warn(&r->warnings, "workflow.conclusion is missing: counts as failure");
        c->no_conclusion = true;
        strcpy(c->conclusion, "failure");
    }
    if (!c->conclusion[0] || conclusion_valid(str_of(c->conclusion)))
        return OK;
    return why_set(why, ERR_REFUSE, "workflow.conclusion is unknown" CONCLUSIONS_ACCEPTED);
}

static void set_defaults(struct body_parse *r, struct str attempt)
{
    struct callback *c = r->c;
    const int64_t *n = r->counts;
    if (!c->job_name[0])
        str_copy(c->job_name, sizeof(c->job_name), str_of(c->workflow_name));
    uint64_t n_attempt;
    if (!c->run_attempt[0] && (!str_to_u64(attempt, &n_attempt) ||
                               !str_copy(c->run_attempt, sizeof(c->run_attempt), attempt)))
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

static void warn_rest(struct body_parse *r)
{
    if (r->rows_left_out)
        callback_warn(&r->warnings,
                      "workflow.failed_tests_detail: %lld left out; kept are %d that have a name",
                      (long long)r->rows_left_out, ROWS_MAX);
    if (callback_is_self(r->c) && !callback_commit(r->c)[0])
        callback_warn(&r->warnings, "no commit of 40 or 64 hex digits in payload.head_sha, "
                                    "payload.after, pytorch_head_sha or delivery_id");
}

enum err callback_parse(struct str body, struct str attempt, struct callback *ret, struct why *why)
{
    memset(ret, 0, sizeof(*ret));
    struct body_parse r = { .c = ret, .counts = { -1, -1, -1, -1 }, .why = why };
    buf_init(&r.rows, (size_t)ROWS_MAX * ROW_MAX_BYTES);
    buf_init(&r.row, ROW_MAX_BYTES);
    enum err err = scan(&r, body);
    if (!err)
        err = check_state(&r, why);
    if (!err)
        err = check_ids(ret, why);
    if (err) {
        callback_clear(ret);
    } else {
        set_defaults(&r, attempt);
        ret->failed_tests_cut = r.rows_left_out;
        warn_rest(&r);
        if (r.warnings.n) {
            buf_putc(&r.warnings.list, ']');
            ret->warnings = buf_take(&r.warnings.list, NULL);
        }
        if (r.n_rows) {
            buf_putc(&r.rows, ']');
            ret->failed_tests = buf_take(&r.rows, NULL);
        }
    }
    buf_clear(&r.warnings.list);
    buf_clear(&r.rows);
    buf_clear(&r.row);
    return err;
}
