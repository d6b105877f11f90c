/* The role forward: results → HUD API. */
#ifndef CRCR_REPORTER_FORWARD_H
#define CRCR_REPORTER_FORWARD_H

#include <uthash.h>

#include "../common/base/standstill.h"
#include "../common/io/http_client.h"
#include "reporter.h"

/*   QUEUED ──▶ POSTING ──2xx──▶ record_done
 *     ▲           ├──4xx, 5xx too often──▶ PARKING ──stored──▶ record_done
 *     └── later ◀─┴──5xx, no answer */
enum post_state { POST_QUEUED, POST_POSTING, POST_PARKING };

struct post {
    struct forward *forward;
    struct record *record; /* NULL once its partition was taken away */
    enum post_state state;
    char *class, *error;   /* set: goes to the dead-letter queue */
    int64_t retries;       /* how often the HUD answered 5xx; no answer says nothing about a row */
    int64_t not_before_ms; /* monotonic clock */
    int64_t wait_ms;       /* the last wait of this one */
    struct buf body;
    struct lane *lane;
    struct post *prev, *next; /* in its lane */
};

/* The results of one job, in order. */
struct lane {
    char *key;
    size_t key_len;
    struct post *posts;
    UT_hash_handle hh;
};

struct forward {
    const struct reporter *reporter;
    struct role_ctx *role;
    struct topic_reader *reader;
    struct topic_writer *writer;
    struct http_client *client;
    char url[2048];
    const char *bot_key;
    struct lane *lanes;  /* by key; in the order in which they are tried */
    int64_t max_retries; /* 0: for ever */
    size_t n_posting, n_parking;
    bool away, paused;
    int64_t not_before_ms; /* monotonic clock: the HUD is away */
    int64_t wait_ms;
    struct standstill standstill;
};

/* ---- forward_post.c: one row on its way to the HUD ---------------------------------------------
 */

/* Counts what comes of them from 0 on: only so is the first refusal an increase, which an alert
 * sees. */
void posts_declare(struct metrics *m);
/* Sends it; when that cannot even be begun it stays queued. */
void post_start(struct post *p);
/* Puts it into the dead-letter queue; stays queued while the writer's queue is full. */
void post_park(struct post *p);
/* Decides that it goes to the dead-letter queue, at its next turn. */
void post_refuse(struct post *p, const char *class, const char *error);
/* Frees it, and its lane with the last one; the record must be done or dropped before. */
void post_free(struct post *p);

#endif
