#include "responder.h"

#include <stdlib.h>

#include "../common/base/clock.h"
#include "../common/base/fault.h"
#include "../common/base/json_text.h"
#include "../common/base/log.h"
#include "../common/base/mem.h"
#include "../common/model/ids.h"

#define RETRY_AFTER_S 2

const struct route_names webhook_names = { "webhook", "webhook_accepted", "webhook_ignored",
                                           "webhook_refused", "webhook_late" };
const struct route_names callback_names = { "callback", "callback_accepted", "callback_ignored",
                                            "callback_refused", "callback_late" };
const struct route_names whoami_names = { "whoami", "whoami_answered", "whoami_answered",
                                          "whoami_refused", "whoami_late" };

void request_init(struct request *r, struct http_exchange *x, const struct route_names *names,
                  struct str delivery)
{
    *r = (struct request){ .x = x, .names = names };
    if (delivery_valid(delivery))
        (void)str_copy(r->delivery, sizeof(r->delivery), delivery);
}

void responder_declare(struct responder *responder, const char *const *topics, size_t n)
{
    static const char *const later[][2] = {
        { "webhook", "publish_failed" },  { "webhook", "late" },
        { "webhook", "overloaded" },      { "webhook", "no_memory" },
        { "callback", "publish_failed" }, { "callback", "late" },
        { "callback", "overloaded" },     { "callback", "issuer_keys" },
        { "callback", "no_allowlist" },
    };
    for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++)
        metrics_add(responder->metrics, INGEST_REQUESTS,
                    METRIC_LABELS(str_of(later[i][0]), STR_LIT("503"), str_of(later[i][1])), 0);
    for (size_t i = 0; i < n; i++)
        for (int err = ERR_REFUSE; err <= ERR_STOP; err++)
            metrics_add(responder->metrics, INGEST_PRODUCE_FAILURES,
                        METRIC_LABELS(str_of(topics[i]), str_of(err_name((enum err)err))), 0);
}

/* ---- answers -------------------------------------------------------------------------------- */

static void answer_count(struct responder *responder, const struct request *request, int status,
                         const char *reason)
{
    struct str route = str_of(request->names->route);
    metrics_add(responder->metrics, INGEST_REQUESTS,
                METRIC_LABELS(route, STR_NUMBER(status), str_of(reason)), 1);
    if (request->started_us != 0)
        metrics_observe(responder->metrics, INGEST_SECONDS, METRIC_LABELS(route),
                        (double)(clock_mono_us() - request->started_us) / 1e6);
}

/* False when the deadline has answered already, with 503. */
static bool reply(struct responder *responder, const struct request *request, int status,
                  const char *reason, int retry_after_s, struct str body)
{
    struct headers extra;
    headers_init(&extra);
    if (retry_after_s > 0)
        headers_put_i64(&extra, "Retry-After", retry_after_s);
    bool in_time = http_reply(request->x, status, NULL, &extra, body);
    answer_count(responder, request, in_time ? status : 503, in_time ? reason : "late");
    return in_time;
}

void responder_answer_with(struct responder *responder, const struct request *request,
                           const struct answer *a, struct str body)
{
    const char *event = a->status < 400 ? request->names->ignored : request->names->refused;
    log_info(event, LOG_STR("delivery", str_of(request->delivery)),
             LOG_STR("repo", str_of(request->repo)), LOG_INT("status", a->status),
             LOG_STR("reason", str_of(a->reason)));
    (void)reply(responder, request, a->status, a->reason, a->retry_after_s, body);
}

void responder_answer(struct responder *responder, const struct request *request,
                      const struct answer *a)
{
    struct buf CLEANUP(buf_clear) body = BUF_INIT(8 * sizeof(a->text));
    buf_puts(&body, "{\"detail\": ");
    json_text_put(&body, str_of(a->text));
    buf_putc(&body, '}');
    responder_answer_with(responder, request, a,
                          a->status < 400 ? str_of(a->text) : buf_str(&body));
}

void responder_refused(struct responder *responder, struct http_exchange *x,
                       const struct route_names *names, int status)
{
    const char *reason = status == 413   ? "too_large"
                         : status == 408 ? "too_slow"
                         : status == 400 ? "ambiguous"
                                         : "overloaded";
    struct request request;
    request_init(&request, x, names, http_header(x, "X-GitHub-Delivery"));
    answer_count(responder, &request, status, reason);
    log_info(names->refused, LOG_STR("delivery", str_of(request.delivery)),
             LOG_INT("status", status), LOG_STR("reason", str_of(reason)));
}

/* ---- publishing ----------------------------------------------------------------------------- */

/* A record on its way. */
struct publishing {
    struct responder *responder;
    struct request request;
    const char *topic;
    size_t bytes;
    int status;
    char *answer;
};

static void publishing_free(struct publishing *p)
{
    free(p->answer);
    free(p);
}

static void failed(struct responder *responder, const struct request *request, const char *topic,
                   enum err err, const char *reason)
{
    metrics_add(responder->metrics, INGEST_PRODUCE_FAILURES,
                METRIC_LABELS(str_of(topic), str_of(err_name(err))), 1);
    log_warn("publish_failed", LOG_STR("delivery", str_of(request->delivery)),
             LOG_STR("topic", str_of(topic)), LOG_STR("error", str_of(err_name(err))),
             LOG_STR("reason", str_of(reason)));
    struct answer a;
    (void)answer_later(&a, 503, "publish_failed", RETRY_AFTER_S, "%s",
                       err == ERR_UNKNOWN ? "Kafka did not acknowledge in time, the outcome is "
                                            "unknown; again is harmless"
                                          : "not stored, try again");
    responder_answer(responder, request, &a);
}

/* On the writer's thread. */
static void publish_reported(void *opaque, enum err err, const struct topic_position *at,
                             const char *reason)
{
    struct publishing *p = opaque;
    atomic_fetch_sub(&p->responder->bytes_in_hand, p->bytes);
    FAULT_POINT("ingest.acknowledged");
    const struct request *request = &p->request;
    if (err) {
        failed(p->responder, request, p->topic, err, reason);
        publishing_free(p);
        return;
    }
    bool in_time = reply(p->responder, request, p->status, "stored", 0, str_of(p->answer));
    log_info(in_time ? request->names->accepted : request->names->late,
             LOG_STR("delivery", str_of(request->delivery)), LOG_STR("repo", str_of(request->repo)),
             LOG_STR("topic", str_of(at->topic)), LOG_INT("partition", at->partition),
             LOG_INT("offset", at->offset),
             LOG_REAL("ms", (double)(clock_mono_us() - request->started_us) / 1e3));
    publishing_free(p);
}

void responder_publish(struct responder *responder, const struct request *request,
                       const struct publication *p)
{
    struct publishing *pending = mem_alloc(1, sizeof(*pending));
    *pending = (struct publishing){ .responder = responder,
                                    .request = *request,
                                    .topic = p->topic,
                                    .bytes = p->value_len,
                                    .status = p->status,
                                    .answer = str_dup(p->answer) };
    atomic_fetch_add(&responder->bytes_in_hand, p->value_len);
    struct why why;
    FAULT_POINT("ingest.before_produce");
    const struct new_record record = {
        p->topic, p->key, { p->value, p->value_len }, p->headers, 0
    };
    enum err err = topic_writer_give(responder->writer, &record, publish_reported, pending, &why);
    if (!err)
        return;
    atomic_fetch_sub(&responder->bytes_in_hand, p->value_len);
    free(p->value);
    publishing_free(pending);
    failed(responder, request, p->topic, err, why.text);
}
