/* The requests in hand of live.c: those that ask for an answer, those that wait for a change, and
 * the addresses that they come from. The owner locks. */
#ifndef CRCR_REPORTER_WEB_READERS_H
#define CRCR_REPORTER_WEB_READERS_H

#include "../../common/base/table.h"
#include "../../common/io/http_server.h"
#include "paths.h"

#define READER_OF_MAX 8 /* paths of one waiting request */

/* An address that requests come from. Forgotten without a request, after its pause. */
struct client {
    size_t readers, asking, waiting; /* in hand; how many of them are in each list */
    int64_t rests_until_ms;          /* monotonic: no look for it before (its pause, live.h) */
};

/* One request: it asks for one path, or waits for a change of several. */
struct reader {
    struct reader *prev, *next;
    struct reader *same; /* others that ask for the same; they are not in the list themselves */
    struct client *client;
    struct http_exchange *x;
    struct path_ask of[READER_OF_MAX];
    size_t n;
    int64_t due_ms;  /* its deadline; monotonic, as seen_ms */
    int64_t seen_ms; /* when the oldest of the answers it was compared with was rendered: decides
                        its turn */
};

struct readers {
    struct table clients;            /* by address */
    struct reader *asking, *waiting; /* each in the order of arrival */
    struct reader *looked;           /* one of waiting: the thread uses it, do not free it */
    size_t n_asking, n_waiting;
};

void readers_init(struct readers *all);
/* Call it when no request is left. */
void readers_clear(struct readers *all);

/* It is in neither list yet. */
struct reader *reader_new(struct readers *all, struct http_exchange *x);
/* Call it when the request was answered, and is in no list. */
void reader_free(struct reader *r);

/* Adds r: to those that ask for the same path, or else to the list. */
void readers_ask(struct readers *all, struct reader *r);
/* Takes r out of the list; another one that asks for the same replaces it. */
void readers_ask_end(struct readers *all, struct reader *r);
/* Takes out the oldest, with all that ask for the same; NULL: there is none. */
struct reader *readers_ask_take(struct readers *all);

void readers_wait(struct readers *all, struct reader *r);
/* Takes r out of the list, and frees it. */
void readers_wait_end(struct readers *all, struct reader *r);
/* Of the waiting requests whose address has no pause, the one that was seen longest ago; NULL:
 * there is none. */
struct reader *readers_wait_next(const struct readers *all, int64_t now_ms);

/* The newest request of the address with most requests in list (one of the two). */
struct reader *readers_crowd(const struct readers *all, struct reader *list);
/* Forgets the addresses that are not needed. */
void readers_tidy(struct readers *all, int64_t now_ms);

#endif
