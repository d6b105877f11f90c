#include "callbacks.h"

#include <jansson.h>
#include <stdlib.h>
#include <utlist.h>

#include "../../common/base/clock.h"
#include "../../common/base/log.h"
#include "../../common/base/mem.h"
#include "history.h"
#include "oidc.h"
#include "options.h"
#include "rows.h"
#include "shape.h"
#include "sim.h"
#include "timers.h"

#define RETRY_AFTER_MS 60000 /* longer is not waited for */
/* The client's connections to one host. What it is given beyond them it looks through at each
 * answer, and its time runs: thousands would all run out. */
#define UNDER_WAY_MAX  32

/* One callback on its way; owned by the request or the timer that is under way, or by the list. */
struct sending {
    struct sending *prev, *next;
    struct sim *sim;
    json_t *row; /* shared with the list of rows; changed with each try */
    char *body;
    char *authorization;
    unsigned epoch;
    int64_t tries, retries, retry_delay_ms;
};

struct sendings {
    struct sending *waiting;
    size_t under_way; /* those of before a reset, too */
    unsigned epoch;   /* one more with each reset: what is older is not tried again */
};

struct sendings *sendings_new(void)
{
    return mem_alloc(1, sizeof(struct sendings));
}

static void sending_free(void *opaque)
{
    struct sending *s = opaque;

    json_decref(s->row);
    free(s->body);
    free(s->authorization);
    free(s);
}

void sendings_clear(struct sendings *s)
{
    struct sending *one, *next;

    DL_FOREACH_SAFE(s->waiting, one, next)
    {
        DL_DELETE(s->waiting, one);
        sending_free(one);
    }
    s->epoch++;
}

size_t sendings_under_way(const struct sendings *s)
{
    return s->under_way;
}

void sendings_free(struct sendings *s)
{
    free(s);
}

static void sending_due(void *opaque);
static void next_try(struct sendings *all);

static int64_t retry_in_ms(const struct sending *s, const struct http_answer *answer)
{
    int64_t reported_ms =
        answer->err ? 0 : headers_get_i64(answer->headers, "retry-after", 0) * 1000;

    if (reported_ms < 0 || reported_ms > RETRY_AFTER_MS)
        reported_ms = RETRY_AFTER_MS;
    return reported_ms > s->retry_delay_ms ? reported_ms : s->retry_delay_ms;
}

static void sending_answered(void *opaque, const struct http_answer *answer)
{
    struct sending *s = opaque;
    struct sendings *all = s->sim->sendings;
    bool again = answer->err || answer->status == 429 || answer->status >= 500;
    json_t *text = answer->err ? json_string(answer->reason)
                               : json_stringn(answer->body.ptr, answer->body.len);

    json_object_set_new(s->row, "tries", json_integer(s->tries));
    json_object_set_new(s->row, "http_status", json_integer(answer->err ? 0 : answer->status));
    json_object_set_new(s->row, "answer", text ? text : json_null());
    json_object_set_new(s->row, "answered_ms", json_integer(clock_wall_ms()));
    history_callback(s->sim->history, s->row);
    all->under_way--;
    if (again && s->tries <= s->retries && s->epoch == all->epoch)
        timers_add(s->sim->timers, retry_in_ms(s, answer), sending_due, sending_free, s);
    else
        sending_free(s);
    next_try(all);
}

static void sending_try(struct sending *s)
{
    struct headers headers;
    struct why why;
    struct http_request request = { .method = "POST",
                                    .url = s->sim->options->callback_url,
                                    .headers = &headers,
                                    .body = str_of(s->body),
                                    .timeout_ms = 30000 };

    s->tries++;
    headers_init(&headers);
    headers_put(&headers, "Content-Type", STR_LIT("application/json"));
    headers_put(&headers, "Authorization", str_of(s->authorization));
    if (http_client_start(s->sim->client, &request, sending_answered, s, &why)) {
        log_error("callback_failed", LOG_STR("why", str_of(why.text)));
        sending_free(s);
    } else {
        s->sim->sendings->under_way++;
    }
}

static void next_try(struct sendings *all)
{
    while (all->waiting && all->under_way < UNDER_WAY_MAX) {
        struct sending *s = all->waiting;

        DL_DELETE(all->waiting, s);
        sending_try(s);
    }
}

static void sending_due(void *opaque)
{
    struct sending *s = opaque;
    struct sendings *all = s->sim->sendings;

    if (s->epoch != all->epoch) {
        sending_free(s);
        return;
    }
    DL_APPEND(all->waiting, s);
    next_try(all);
}

/* The `workflow` object of a callback's body. */
static json_t *workflow_of(const struct run *run, size_t job, const char *status)
{
    const struct job_setting *setting = &run->settings->jobs[job];
    const struct run_job *state = &run->jobs[job];
    bool completed = str_is(str_of(status), "completed");
    json_t *w = json_pack(
        "{s:s, s:s, s:s?, s:s, s:o, s:o, s:I, s:s, s:o, s:o}", "schema_version", "1", "status",
        status, "conclusion",
        completed ? (state->conclusion ? state->conclusion : setting->conclusion) : NULL, "name",
        run->settings->workflow, "url",
        json_sprintf("https://github.com/%s/actions/runs/%lld", run->repo, (long long)run->id),
        "run_id", json_sprintf("%lld", (long long)run->id), "run_attempt", (json_int_t)run->attempt,
        "job_name", setting->name, "check_run_id", json_sprintf("%lld", (long long)state->id),
        "started_at", shape_time(state->started_ms));

    if (completed) {
        json_object_set_new(w, "completed_at",
                            shape_time(state->ended_ms ? state->ended_ms : clock_wall_ms()));
        if (setting->tests)
            json_object_set(w, "test_results", (json_t *)setting->tests);
        json_object_update(w, (json_t *)setting->details);
    }
    return w;
}

static char *body_of(const struct run *run, size_t job, const char *status)
{
    json_t *body = json_is_object(run->payload) ? json_copy(run->payload) : json_object();
    char *text;

    json_object_set_new(body, "workflow", workflow_of(run, job, status));
    text = json_dumps(body, JSON_COMPACT);
    json_decref(body);
    return text;
}

static char *authorization_of(struct sim *sim, const struct run *run, struct why *why)
{
    struct oidc_job job = { .repo = str_of(run->repo),
                            .run_id = run->id,
                            .run_attempt = run->attempt,
                            .workflow = run->settings->workflow };
    char *CLEANUP(mem_free_char) token = NULL;
    char *value;
    size_t size;

    if (oidc_token(sim->oidc, &job, run->settings->claims, clock_wall_ms(), &token, why))
        return NULL;
    size = strlen(token) + sizeof("Bearer ");
    value = mem_alloc(size, 1);
    snprintf(value, size, "Bearer %s", token);
    return value;
}

static json_t *row_of(const struct run *run, size_t job, const char *status)
{
    json_t *delivery = json_object_get(run->payload, "delivery_id");

    return json_pack("{s:s, s:I, s:I, s:s, s:s, s:O?, s:I, s:i, s:i}", "repo", run->repo, "run_id",
                     (json_int_t)run->id, "run_attempt", (json_int_t)run->attempt, "job",
                     run->settings->jobs[job].name, "status", status, "delivery_id", delivery,
                     "at_ms", (json_int_t)clock_wall_ms(), "tries", 0, "http_status", 0);
}

void callbacks_send(struct sim *sim, const struct run *run, size_t job, const char *status)
{
    struct sending *s;
    struct why why;

    if (!sim->options->callback_url)
        return;
    s = mem_alloc(1, sizeof(*s));
    s->sim = sim;
    s->epoch = sim->sendings->epoch;
    s->row = row_of(run, job, status);
    s->body = body_of(run, job, status);
    s->authorization = authorization_of(sim, run, &why);
    s->retries = run->settings->retries;
    s->retry_delay_ms = run->settings->retry_delay_ms;
    if (!s->authorization || !s->body) {
        log_error("callback_failed", LOG_STR("why", str_of(why.text)));
        sending_free(s);
        return;
    }
    rows_put(sim->callbacks, json_incref(s->row));
    sending_due(s);
}
