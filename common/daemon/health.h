/* When a role counts as healthy. PURE: the time is an argument. */
#ifndef CRCR_DAEMON_HEALTH_H
#define CRCR_DAEMON_HEALTH_H

#include "../base/err.h"
#include "../base/str.h"

/* A loop without a sign of life for so long hangs. */
#define HEALTH_SILENT_MS  25000
/* Lag without progress, and without a reason to wait, for so long is a stall. */
#define HEALTH_STALLED_MS 90000

struct health {
    bool ended;          /* the thread has ended */
    bool waiting;        /* on purpose */
    int64_t lag;         /* records; -1: unknown */
    int64_t oldest_ms;   /* wall clock of the oldest that is not done; -1: none in hand */
    int64_t alive_ms;    /* the loop's last turn */
    int64_t progress_ms; /* the last progress, or when the next one became due */
};

/* Healthy, with progress at now_ms. */
void health_init(struct health *h, int64_t now_ms);
void health_lag(struct health *h, int64_t lag, int64_t now_ms);
/* When the oldest record in hand was written, by the wall clock; -1: none is in hand. */
void health_oldest(struct health *h, int64_t oldest_ms);
void health_waiting(struct health *h, bool waiting, int64_t now_ms);
/* How long the oldest record has waited, in seconds: 0 without lag, -1 while the lag is unknown.
 * With lag and nothing in hand (the role is not reading): since the last progress. */
double health_backlog_seconds(const struct health *h, int64_t now_ms, int64_t now_wall_ms);
/* How long there has been lag without progress; 0 without lag. */
double health_stalled_seconds(const struct health *h, int64_t now_ms);
/* ERR_STOP with the reason when the role is not healthy. */
enum err health_check(const struct health *h, int64_t now_ms, struct why *why) MUST_CHECK;

#endif
