#include "result_record.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "../base/clock.h"
#include "../base/mem.h"
#include "canary.h"
#include "ids.h"
#include "json_scan.h"
#include "limits.h"

#define RAW_KEY_MAX     (REPO_MAX + DELIVERY_MAX + 2 * NAME_MAX_BYTES + 2 * RUN_ID_MAX)
#define ENCODED_KEY_MAX (4 * RAW_KEY_MAX)

/* NUMBER_TEXT: a text that JSON shows as a number when it is one. */
enum column_type { TEXT, NUMBER_TEXT, KEY, NUMBER, STATE, LEVEL, MILLIS, SECONDS };

struct column {
    const char *name;
    enum column_type type;
    size_t offset;
    int64_t unknown; /* of numbers */
    bool in_json;
    char group; /* result_field */
};

#define AT(member) offsetof(struct result_record, member)
static const struct column columns[] = {
    { "dynamoKey", KEY, AT(key), 0, true, '=' },
    { "status", STATE, AT(state), JOB_NONE, true, 0 },
    { "conclusion", TEXT, AT(conclusion), 0, true, 'c' },
    { "downstream_repo", TEXT, AT(repo), 0, true, '=' },
    { "downstream_repo_level", LEVEL, AT(level), -1, true, 'l' },
    { "upstream_repo", TEXT, AT(upstream_repo), 0, true, 'u' },
    { "event_type", TEXT, AT(event_type), 0, true, 'e' },
    { "pr_number", NUMBER, AT(pr_number), 0, true, 'p' },
    { "pytorch_head_sha", TEXT, AT(head_sha), 0, true, 'p' },
    { "delivery_id", TEXT, AT(delivery_id), 0, true, '=' },
    { "workflow_name", TEXT, AT(workflow_name), 0, true, '=' },
    { "job_name", TEXT, AT(job_name), 0, true, '=' },
    { "check_run_id", TEXT, AT(check_run_id), 0, true, '=' },
    { "run_id", TEXT, AT(run_id), 0, true, 'r' },
    { "run_attempt", NUMBER_TEXT, AT(run_attempt), 0, true, '=' },
    { "workflow_run_url", TEXT, AT(run_url), 0, true, 'w' },
    { "artifact_url", TEXT, AT(artifact_url), 0, true, 'a' },
    { "queue_time", SECONDS, AT(queue_ms), -1, true, 'q' },
    { "execution_time", SECONDS, AT(execution_ms), -1, true, 'x' },
    { "started_at", TEXT, AT(started_at), 0, true, 's' },
    { "completed_at", TEXT, AT(completed_at), 0, true, 'd' },
    { "total_tests", NUMBER, AT(total), -1, true, 't' },
    { "passed_tests", NUMBER, AT(passed), -1, true, 't' },
    { "failed_tests", NUMBER, AT(failed), -1, true, 't' },
    { "skipped_tests", NUMBER, AT(skipped), -1, true, 't' },
    { "failed_tests_json", TEXT, AT(failed_tests), 0, true, 'f' },
    { "triage_verdict_json", TEXT, AT(triage_verdict), 0, true, 'v' },
    { "environment", TEXT, AT(environment), 0, true, 'n' },
    { "dispatched_ms", MILLIS, AT(dispatched_ms), -1, false, 'm' },
    { "run_started_ms", MILLIS, AT(run_started_ms), -1, false, 0 },
    { "ended_by", TEXT, AT(ended_by), 0, false, '=' },
    { "in_progress_ms", MILLIS, AT(in_progress_ms), -1, false, '<' },
    { "timed_out_ms", MILLIS, AT(timed_out_ms), -1, false, '<' },
    { "completed_ms", MILLIS, AT(completed_ms), -1, false, '<' },
    { "failed_tests_cut", NUMBER, AT(failed_tests_cut), -1, false, 'f' },
    { "run_complete", NUMBER, AT(run_complete), -1, false, 'z' },
    { "no_conclusion", NUMBER, AT(no_conclusion), -1, false, 'c' },
    { "issuer", TEXT, AT(issuer), 0, false, 'i' },
    { "top_level", LEVEL, AT(top_level), -1, false, '>' },
    { "ranks", TEXT, AT(ranks), 0, false, 0 },
    { "first_ms", MILLIS, AT(first_ms), -1, false, 0 },
    { "last_ms", MILLIS, AT(last_ms), -1, false, 0 },
};
#undef AT
#define N_COLUMNS (sizeof(columns) / sizeof(columns[0]))
_Static_assert(N_COLUMNS <= RESULT_FIELDS_MAX, "result_field arrays are too small");

static bool is_text(const struct column *c)
{
    return c->type == TEXT || c->type == NUMBER_TEXT || c->type == KEY;
}

static char **column_text(const struct result_record *r, const struct column *c)
{
    return (char **)((char *)(uintptr_t)r + c->offset);
}

static int64_t number_of(const struct result_record *r, const struct column *c)
{
    if (c->type == STATE)
        return (int64_t)r->state;
    return *(const int64_t *)((const char *)r + c->offset);
}

static void number_set(struct result_record *r, const struct column *c, int64_t value)
{
    *(int64_t *)((char *)r + c->offset) = value;
}

void result_record_init(struct result_record *r)
{
    memset(r, 0, sizeof(*r));
    for (size_t i = 0; i < N_COLUMNS; i++)
        if (!is_text(&columns[i]) && columns[i].type != STATE)
            number_set(r, &columns[i], columns[i].unknown);
}

void result_record_clear(struct result_record *r)
{
    for (size_t i = 0; i < N_COLUMNS; i++)
        if (is_text(&columns[i]))
            free(*column_text(r, &columns[i]));
    free(r->known);
    result_record_init(r);
}

void result_record_copy(struct result_record *to, const struct result_record *from)
{
    *to = *from;
    for (size_t i = 0; i < N_COLUMNS; i++)
        if (is_text(&columns[i]) && *column_text(from, &columns[i]))
            *column_text(to, &columns[i]) = mem_dup(*column_text(from, &columns[i]));
}

/* ---- a Redis hash -------------------------------------------------------------------------- */

static struct str field_value(const struct result_record *r, const struct column *c,
                              struct result_field *field)
{
    if (is_text(c)) {
        const char *text = *column_text(r, c);
        return text && *text ? str_of(text) : STR_NONE;
    }
    int64_t n = number_of(r, c);
    if (n == c->unknown)
        return STR_NONE;
    if (c->type == STATE)
        return str_of(job_state_name((enum job_state)n));
    field->text[0] = 'L';
    if (c->type == LEVEL)
        return (struct str){ field->text, 1 + str_number(field->text + 1, n).len };
    return c->type == SECONDS ? str_seconds(field->text, n) : str_number(field->text, n);
}

size_t result_record_fields(const struct result_record *r,
                            struct result_field to[RESULT_FIELDS_MAX])
{
    for (size_t i = 0; i < N_COLUMNS; i++) {
        to[i].name = str_of(columns[i].name);
        to[i].group = columns[i].group;
        to[i].value = field_value(r, &columns[i], &to[i]);
    }
    return N_COLUMNS;
}

static bool is_long(const struct column *c)
{
    return c->offset == offsetof(struct result_record, failed_tests) ||
           c->offset == offsetof(struct result_record, triage_verdict) ||
           c->offset == offsetof(struct result_record, ranks);
}

size_t result_record_names(struct str to[RESULT_FIELDS_MAX], bool brief)
{
    size_t n = 0;
    for (size_t i = 0; i < N_COLUMNS; i++)
        if (!brief || !is_long(&columns[i]))
            to[n++] = str_of(columns[i].name);
    return n;
}

/* "12.345" → 12345; digits behind the third are cut. */
static bool parse_seconds(struct str s, int64_t *ms)
{
    struct str digits = s, fraction = STR_LIT("");
    ptrdiff_t dot = str_find(s, '.');
    if (dot >= 0) {
        digits.len = (size_t)dot;
        fraction = str_from(s, (size_t)dot + 1);
    }
    uint64_t seconds;
    if (!str_to_u64(digits, &seconds) || seconds > INT32_MAX)
        return false;
    int64_t millis = 0;
    for (size_t i = 0; i < 3; i++) {
        char c = i < fraction.len ? fraction.ptr[i] : '0';
        if (c < '0' || c > '9')
            return false;
        millis = millis * 10 + (c - '0');
    }
    *ms = (int64_t)seconds * 1000 + millis;
    return true;
}

/* fold.lua's work grows with each text. */
static size_t most_bytes(const struct column *c)
{
    if (c->offset == offsetof(struct result_record, ranks))
        return RESULT_RANKS_MAX;
    return is_long(c) ? CALLBACK_MAX_BYTES : RESULT_TEXT_MAX;
}

static void column_set(struct result_record *r, const struct column *c, struct str value)
{
    int64_t n;
    switch (c->type) {
    case TEXT:
    case NUMBER_TEXT:
    case KEY:
        free(*column_text(r, c));
        *column_text(r, c) = value.len > 0 && value.len <= most_bytes(c) ? str_dup(value) : NULL;
        return;
    case STATE:
        r->state = job_state_of(value);
        return;
    case SECONDS:
        if (parse_seconds(value, &n))
            number_set(r, c, n);
        else if (!value.len)
            number_set(r, c, c->unknown);
        return;
    case LEVEL:
        if (str_starts(value, "L"))
            value = str_from(value, 1);
        /* fall through */
    case NUMBER:
    case MILLIS:
        if (str_to_i64(value, &n))
            number_set(r, c, n);
        else if (!value.len)
            number_set(r, c, c->unknown);
        return;
    }
}

void result_record_set(struct result_record *r, struct str name, struct str value)
{
    for (size_t i = 0; i < N_COLUMNS; i++) {
        if (!str_is(name, columns[i].name))
            continue;
        column_set(r, &columns[i], value);
        return;
    }
}

/* ---- times --------------------------------------------------------------------------------- */

static int64_t between(int64_t from_ms, int64_t to_ms)
{
    return to_ms > from_ms ? to_ms - from_ms : 0;
}

static void fill_time(char **text, int64_t wall_ms)
{
    char formatted[CLOCK_TEXT_SIZE];
    if (*text || wall_ms < 0)
        return;
    clock_format(wall_ms, formatted);
    *text = mem_dup(formatted);
}

void result_record_times(struct result_record *r)
{
    bool first_attempt = r->run_attempt && strcmp(r->run_attempt, "1") == 0;
    int64_t started_ms = r->run_started_ms >= 0 ? r->run_started_ms : r->in_progress_ms;
    if (first_attempt && r->dispatched_ms >= 0 && started_ms >= 0)
        r->queue_ms = between(r->dispatched_ms, started_ms);
    if (r->in_progress_ms >= 0 && r->completed_ms >= 0)
        r->execution_ms = between(r->in_progress_ms, r->completed_ms);
    fill_time(&r->started_at, r->in_progress_ms);
    fill_time(&r->completed_at, r->completed_ms >= 0 ? r->completed_ms : r->timed_out_ms);
}

/* ---- headers of the topic results ------------------------------------------------------------ */

void result_record_to_headers(const struct result_record *r, struct headers *to)
{
    struct result_field field;
    for (size_t i = 0; i < N_COLUMNS; i++) {
        const struct column *c = &columns[i];
        if (c->in_json)
            continue;
        struct str value = field_value(r, c, &field);
        if (is_text(c))
            headers_put(to, c->name, value);
        else if (value.ptr)
            headers_put_copy(to, c->name, value);
    }
}

void result_record_from_headers(struct result_record *r, const struct headers *from)
{
    for (size_t i = 0; i < N_COLUMNS; i++) {
        const struct column *c = &columns[i];
        struct str value = c->in_json ? STR_NONE : headers_get(from, c->name);
        if (value.ptr)
            column_set(r, c, value);
    }
}

/* ---- JSON ---------------------------------------------------------------------------------- */

/* The parts of the key; false when one is missing. */
static bool key_parts(const struct result_record *r, struct str parts[5])
{
    const char *const texts[] = { r->repo, r->delivery_id, r->workflow_name, r->job_name,
                                  r->check_run_id };
    for (size_t i = 0; i < 5; i++) {
        parts[i] = str_of(texts[i]);
        if (!parts[i].ptr)
            return false;
    }
    return true;
}

/* The HUD of today joins the parts as they are; the topic's key and ours encode them. */
static void put_raw_key(struct buf *to, const struct result_record *r)
{
    struct buf CLEANUP(buf_clear) key = BUF_INIT(RAW_KEY_MAX);
    struct str parts[5];
    bool known = key_parts(r, parts);
    for (size_t i = 0; known && i < 5; i++) {
        if (i)
            buf_putc(&key, '/');
        buf_put(&key, parts[i]);
    }
    json_quote(to, known ? buf_str(&key) : str_of(r->key));
}

/* As JSON and C both write it: no sign, no leading zero. */
static bool is_number(struct str text)
{
    uint64_t n;
    return text.len && text.len <= 15 && (text.ptr[0] != '0' || text.len == 1) &&
           str_to_u64(text, &n);
}

static void put_value(struct buf *to, const struct result_record *r, const struct column *c,
                      struct str value)
{
    if (!value.ptr)
        buf_puts(to, "null");
    else if (c->type == KEY)
        put_raw_key(to, r);
    else if (c->type == NUMBER || c->type == SECONDS ||
             (c->type == NUMBER_TEXT && is_number(value)))
        buf_put(to, value);
    else
        json_quote(to, value);
}

void result_record_to_json(const struct result_record *r, struct buf *to)
{
    struct result_field field;
    bool first = true;
    for (size_t i = 0; i < N_COLUMNS; i++) {
        const struct column *c = &columns[i];
        if (!c->in_json)
            continue;
        buf_puts(to, first ? "{\"" : ",\"");
        buf_puts(to, c->name);
        buf_puts(to, "\":");
        first = false;
        struct str value = field_value(r, c, &field);
        put_value(to, r, c, value);
    }
    buf_putc(to, '}');
}

static void set_from_json(struct result_record *r, const struct column *c, const json_t *value)
{
    char text[32];
    if (json_is_string(value)) {
        column_set(r, c, (struct str){ json_string_value(value), json_string_length(value) });
        return;
    }
    if (!json_is_number(value))
        return;
    if (c->type == SECONDS)
        snprintf(text, sizeof(text), "%.3f", json_number_value(value));
    else
        snprintf(text, sizeof(text), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    column_set(r, c, str_of(text));
}

/* Of its parts: what JSON has of it is for the HUD. */
static void set_key(struct result_record *r)
{
    struct buf CLEANUP(buf_clear) key = BUF_INIT(ENCODED_KEY_MAX);
    struct str parts[5];
    if (!key_parts(r, parts))
        return;
    job_key(&key, parts[0], parts[1], parts[2], parts[3], parts[4]);
    free(r->key);
    r->key = str_dup(buf_str(&key));
}

enum err result_record_from_json(struct str json, struct result_record *ret, struct why *why)
{
    json_error_t error;
    json_t *root = json_loadb(json.ptr ? json.ptr : "", json.len, JSON_REJECT_DUPLICATES, &error);
    if (!json_is_object(root)) {
        json_decref(root);
        return why_set(why, ERR_REFUSE, "a result must be a JSON object: %s", error.text);
    }
    struct result_record r;
    result_record_init(&r);
    for (size_t i = 0; i < N_COLUMNS; i++)
        set_from_json(&r, &columns[i], json_object_get(root, columns[i].name));
    json_decref(root);
    set_key(&r);
    if (!r.key || !r.repo || r.state == JOB_NONE) {
        result_record_clear(&r);
        return why_set(why, ERR_REFUSE, "a result needs dynamoKey, status and downstream_repo");
    }
    *ret = r;
    return OK;
}

bool result_record_is_self(const struct result_record *r)
{
    struct str type = str_of(r->event_type);
    return str_is(type, "nightly") || str_is(type, "periodic");
}

bool result_record_is_of_actions(const struct result_record *r)
{
    return r->issuer && strcmp(r->issuer, CALLBACK_ISSUER_ACTIONS) == 0;
}

/* A self-report from before ingest wrote it down has it as its delivery. */
const char *result_record_commit(const struct result_record *r)
{
    if (r->head_sha && *r->head_sha)
        return r->head_sha;
    return result_record_is_self(r) && commit_valid(str_of(r->delivery_id)) ? r->delivery_id : NULL;
}

bool result_record_is_of_other_ci(const struct result_record *r)
{
    return r->issuer && !result_record_is_of_actions(r);
}

const char *result_record_conclusion(const struct result_record *r)
{
    if (r->state < JOB_TIMED_OUT)
        return NULL;
    return r->state == JOB_TIMED_OUT && !r->conclusion ? "timed_out" : r->conclusion;
}

bool result_record_is_successful(const struct result_record *r)
{
    const char *conclusion = result_record_conclusion(r);
    return conclusion &&
           strcmp(conclusion, canary_wanted_conclusion(str_of(r->repo), r->job_name)) == 0;
}
