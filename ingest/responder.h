/* The responder: answers requests, with what each answer owes to logs and metrics, and publishes
 * what was accepted. A request is answered 2xx only from the brokers' acknowledgement, on the
 * writer's thread; no thread waits meanwhile. Any thread. */
#ifndef CRCR_INGEST_RESPONDER_H
#define CRCR_INGEST_RESPONDER_H

#include <stdatomic.h>

#include "../common/io/http_server.h"
#include "../common/io/topic_writer.h"
#include "../common/model/limits.h"
#include "metrics.h"
#include "verdict.h"

struct responder {
    struct metrics *metrics;
    struct topic_writer *writer;
    atomic_size_t bytes_in_hand; /* given to the writer, not reported yet */
};

/* What log lines and metrics of a route are called. */
struct route_names {
    const char *route;
    const char *accepted, *ignored, *refused, *late; /* log events */
};
extern const struct route_names webhook_names, callback_names;

/* One request, as far as its answer needs it. */
struct request {
    struct http_exchange *x;
    const struct route_names *names;
    int64_t started_us; /* monotonic: when its last byte had come; 0: not yet */
    char delivery[DELIVERY_MAX + 1];
    char repo[REPO_MAX + 1]; /* who calls back */
};
/* delivery is kept when it is a valid one. */
void request_init(struct request *r, struct http_exchange *x, const struct route_names *names,
                  struct str delivery);

/* Counts from 0 what alerts ask for, of these topics: only so is the first an increase, which an
 * alert sees. */
void responder_declare(struct responder *responder, const char *const *topics, size_t n);

/* Answers now. The exchange is gone afterwards. */
void responder_answer(struct responder *responder, const struct request *request,
                      const struct verdict *v);

/* The server has answered already: the body is too large (413), there is no room for it (503), or
 * it did not come in time (408). */
void responder_refused(struct responder *responder, struct http_exchange *x,
                       const struct route_names *names, int status);

struct publication {
    const char *topic; /* kept by pointer until the report */
    struct str key;
    const struct headers *headers;
    char *value; /* malloc'ed; the responder's from here on */
    size_t value_len;
    int status;        /* when it is stored: this, */
    struct str answer; /* and this body, at most 255 bytes */
};
/* Hands the record to the writer and answers from its report. */
void responder_publish(struct responder *responder, const struct request *request,
                       const struct publication *p);

#endif
