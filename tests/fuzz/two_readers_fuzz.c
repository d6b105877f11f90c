/* Bodies that more than one parser reads are read the same. The first byte chooses: a callback, or
 * an event of that kind.
 *
 * A webhook is read by event_read (json_scan), fitted by payload_fit, and read by downstreams with
 * a parser of their own, here jansson. A name that comes twice is left out: GitHub signs no such
 * body. A callback is read by ingest, and again by the fold, with the token's run attempt beside
 * it. */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/github/payload_fit.h"
#include "common/model/event.h"
#include "common/model/json_scan.h"
#include "ingest/callback.h"
#include "input.h"
#include "reporter/callback_fact.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As the scan reads NUL and halves of a surrogate pair in free text; elsewhere it refuses them.
 * NULL: jansson has limits of its own on numbers, or a name comes twice where that is allowed. */
static json_t *load(struct str body, bool twice_allowed)
{
    json_error_t fault;
    struct buf plain;
    buf_init(&plain, body.len);
    json_replace_nul(&plain, body, STR_LIT("\\ufffd"));
    json_t *root = json_loadb(plain.ptr, plain.len, JSON_REJECT_DUPLICATES, &fault);
    buf_clear(&plain);
    enum json_error_code code = root ? json_error_unknown : json_error_code(&fault);
    must(root || code == json_error_numeric_overflow ||
         (twice_allowed && code == json_error_duplicate_key));
    return root;
}

/* The value at "a.b.c", or NULL. */
static const json_t *at(const json_t *value, const char *path)
{
    struct str rest = str_of(path), part;
    char name[64];
    while (value && str_split(&rest, '.', &part))
        value = str_copy(name, sizeof(name), part) ? json_object_get(value, name) : NULL;
    return value;
}

/* Text of another type, or with more than max bytes, is absent. */
static void same_text(const json_t *root, const char *path, const char *read, size_t max)
{
    const json_t *value = at(root, path);
    struct str text = { json_string_value(value), json_string_length(value) };
    if (text.len > max)
        text.len = 0;
    must(str_eq(input_rest(text), str_of(read)));
}

static void same_number(const json_t *root, const char *path, int64_t read)
{
    must(json_integer_value(at(root, path)) == read);
}

/* ---- webhooks ---- */

#define SAME_TEXT(path, field) same_text(root, path, f->field, sizeof(f->field) - 1)

static void same_as_jansson(const json_t *root, enum event_kind kind, const struct event_facts *f)
{
    SAME_TEXT("repository.full_name", repo);
    SAME_TEXT("repository.default_branch", default_branch);
    if (kind == EVENT_PULL_REQUEST) {
        SAME_TEXT("action", action);
        SAME_TEXT("pull_request.head.sha", head_sha);
        SAME_TEXT("pull_request.updated_at", updated_at);
        SAME_TEXT("label.name", label);
        same_number(root, "pull_request.number", f->pr);
    } else if (kind == EVENT_PUSH) {
        SAME_TEXT("ref", ref);
        SAME_TEXT("after", head_sha);
        must(json_is_true(at(root, "deleted")) == f->deleted);
    } else if (kind == EVENT_CHECK_RUN) {
        SAME_TEXT("action", action);
        SAME_TEXT("check_run.name", check_name);
        SAME_TEXT("check_run.external_id", external_id);
        same_number(root, "check_run.id", f->check_run_id);
        same_number(root, "check_run.app.id", f->app_id);
    } else if (kind == EVENT_CHECK_SUITE) {
        SAME_TEXT("check_suite.head_sha", head_sha);
        same_number(root, "check_suite.id", f->check_suite_id);
    }
}

static void read_webhook(enum event_kind kind, struct str body)
{
    static struct event_facts facts, of_fitted;
    struct why why;
    struct buf fitted, trimmed;
    if (event_read(kind, body, &facts, &why))
        return;
    json_t *root = load(body, true);
    if (root)
        same_as_jansson(root, kind, &facts);
    buf_init(&fitted, 1u << 20);
    buf_init(&trimmed, 1u << 16);
    /* Only an event that is dispatched is fitted. */
    if (root && !event_check(kind, &facts, &why) &&
        (kind == EVENT_PULL_REQUEST || kind == EVENT_PUSH) &&
        !payload_fit(body, body.len - body.len / 4, &fitted, &trimmed, &why))
        must(!event_read(kind, buf_str(&fitted), &of_fitted, &why) && facts.pr == of_fitted.pr &&
             strcmp(facts.repo, of_fitted.repo) == 0 &&
             strcmp(facts.action, of_fitted.action) == 0 &&
             strcmp(facts.head_sha, of_fitted.head_sha) == 0 &&
             strcmp(facts.ref, of_fitted.ref) == 0);
    buf_clear(&fitted);
    buf_clear(&trimmed);
    json_decref(root);
}

/* ---- callbacks ---- */

/* run_id and run_attempt come as a number or as text. */
static void same_id(const json_t *root, const char *path, const char *read)
{
    const json_t *value = at(root, path);
    char digits[STR_NUMBER_SIZE];
    struct str text = json_is_integer(value)
                          ? str_number(digits, json_integer_value(value))
                          : (struct str){ json_string_value(value), json_string_length(value) };
    must(json_is_integer(value) || json_is_string(value) || !value || json_is_null(value));
    must(!text.len || str_eq(text, str_of(read)));
}

static void check_fold(struct str body, const struct callback *c)
{
    struct callback_fact fact;
    struct headers headers;
    struct why why;
    headers_init(&headers);
    headers_put(&headers, "repo", STR_LIT("org/repo"));
    headers_put(&headers, "level", STR_LIT("L3"));
    headers_put(&headers, "delivery", str_of(c->delivery_id));
    headers_put(&headers, "received_ms", STR_LIT("1700000000000"));
    headers_put(&headers, "run_attempt", STR_LIT("3"));
    must(!callback_fact_read(&headers, body, "pytorch/pytorch", &fact, &why));
    must(fact.job.state == c->status && strcmp(fact.job.run_id, c->run_id) == 0 &&
         strcmp(fact.job.run_attempt, c->run_attempt) == 0 &&
         strcmp(fact.job.check_run_id, c->check_run_id) == 0 &&
         strcmp(fact.job.job_name, c->job_name) == 0);
    result_record_clear(&fact.job);
}

static void read_callback(struct str body)
{
    static struct callback_body ret;
    struct answer v = { 0 };
    if (!callback_body_read(body, STR_LIT("3"), &ret, &v)) {
        must(v.status == 400);
        return;
    }
    json_t *root = load(body, false);
    must(!root || json_is_object(root));
    if (ret.fields_valid) {
        const struct callback *c = &ret.fields;
        same_text(root, "delivery_id", root ? c->delivery_id : "", DELIVERY_MAX);
        same_text(root, "workflow.status", root ? job_state_name(c->status) : "", 16);
        same_text(root, "workflow.name", root ? c->workflow_name : "", NAME_MAX_BYTES);
        if (root) {
            same_id(root, "workflow.run_id", c->run_id);
            same_id(root, "workflow.run_attempt", c->run_attempt);
        }
        check_fold(body, c);
    }
    callback_body_clear(&ret);
    json_decref(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct str body = { (const char *)data + 1, size - 1 };
    unsigned kind = data[0] % (EVENT_PING + 1u);
    if (kind == EVENT_OTHER)
        read_callback(body);
    else
        read_webhook((enum event_kind)kind, body);
    return 0;
}
