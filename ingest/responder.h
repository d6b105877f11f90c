/* The responder: answers requests, logs and counts each answer, and publishes what was accepted. A
 * request gets 2xx only when the brokers have acknowledged its record, on the writer's thread; no
 * thread waits meanwhile. Any thread. */
#ifndef CRCR_INGEST_RESPONDER_H
#define CRCR_INGEST_RESPONDER_H

#include <stdatomic.h>

#include "../common/io/http_server.h"
#include "../common/io/topic_writer.h"
#include "../common/model/limits.h"
#include "answer.h"
#include "metrics.h"

struct responder {
    struct metrics *metrics;
    struct topic_writer *writer;
    atomic_size_t bytes_in_hand; /* the writer has them, and has not reported yet */
};

/* The names of a route in log lines and metrics. */
struct route_names {
    const char *route;
    const char *accepted, *ignored, *refused, *late; /* log events */
};
extern const struct route_names webhook_names, callback_names, whoami_names;

/* What the answer to a request needs of it. */
struct request {
    struct http_exchange *x;
    const struct route_names *names;
    int64_t started_us; /* monotonic: when its last byte came; 0: it has not */
    char delivery[DELIVERY_MAX + 1];
    char repo[REPO_MAX + 1]; /* whose callback it is */
};
/* delivery is kept if it is a valid id. */
void request_init(struct request *r, struct http_exchange *x, const struct route_names *names,
                  struct str delivery);

/* Sets the counters that alerts use to 0, for these topics: an alert sees the first failure only as
 * an increase. */
void responder_declare(struct responder *responder, const char *const *topics, size_t n);

/* Answers now. The exchange is gone afterwards. */
void responder_answer(struct responder *responder, const struct request *request,
                      const struct answer *a);
/* The same, of a answer below 400, whose text does not count: body is JSON of any length. */
void responder_answer_with(struct responder *responder, const struct request *request,
                           const struct answer *a, struct str body);

/* Logs and counts a request that the server answered itself: the body is too large (413), there is
 * no memory for it (503), or it did not come in time (408). */
void responder_refused(struct responder *responder, struct http_exchange *x,
                       const struct route_names *names, int status);

struct publication {
    const char *topic; /* kept by pointer until the report */
    struct str key;
    const struct headers *headers;
    char *value; /* malloc'ed; the responder frees it */
    size_t value_len;
    int status;        /* the answer once it is stored: this status */
    struct str answer; /* and this body */
};
/* Gives the record to the writer. The writer's report answers the request. */
void responder_publish(struct responder *responder, const struct request *request,
                       const struct publication *p);

#endif
