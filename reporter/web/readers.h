/* The requests that wait in live.c: who asks for an answer, who waits for a change, and of which
 * address they are. The owner locks. */
#ifndef CRCR_REPORTER_WEB_READERS_H
#define CRCR_REPORTER_WEB_READERS_H

#include "../../common/base/table.h"
#include "../../common/io/http_server.h"
#include "paths.h"

#define READER_OF_MAX 8 /* paths of one who waits */

/* An address that requests come from. It is forgotten when it has none in hand and need not rest.
 */
struct client {
    size_t readers, asking, waiting; /* in hand; of them in these lists */
    int64_t rests_until_ms;          /* monotonic: no look for it before */
};

/* One request in hand: it asks for one path, or waits for a change of several. */
struct reader {
    struct reader *prev, *next;
    struct reader *same; /* who asks for the same, and is not in the list itself */
    struct client *client;
    struct http_exchange *x;
    struct path_ask of[READER_OF_MAX];
    size_t n;
    int64_t due_ms;  /* until when it may be answered; monotonic, as the next */
    int64_t seen_ms; /* when the oldest answer was rendered that it was looked at with: its turn */
};

struct readers {
    struct table clients;            /* by their address */
    struct reader *asking, *waiting; /* each in the order of arrival */
    struct reader *looked;           /* of waiting: in use by the thread, and not to be ended */
    size_t n_asking, n_waiting;
};

void readers_init(struct readers *all);
/* Once there is no request any more. */
void readers_clear(struct readers *all);

/* In neither list yet. */
struct reader *reader_new(struct readers *all, struct http_exchange *x);
/* Once it was answered, and is in no list. */
void reader_free(struct reader *r);

/* r joins those who ask for what its first path is, or becomes the first of them. */
void readers_ask(struct readers *all, struct reader *r);
/* Takes r out; who asks for the same takes its place. */
void readers_ask_end(struct readers *all, struct reader *r);
/* Takes out the first with all who ask for the same; NULL: there is none. */
struct reader *readers_ask_take(struct readers *all);

void readers_wait(struct readers *all, struct reader *r);
/* Takes r out, and frees it. */
void readers_wait_end(struct readers *all, struct reader *r);
/* Of those who wait, and whose address need not rest, the one that was seen longest ago; NULL:
 * there is none. */
struct reader *readers_wait_next(const struct readers *all, int64_t now_ms);

/* The newest of the address that has most in list, which is one of the two. */
struct reader *readers_crowd(const struct readers *all, struct reader *list);
/* Forgets the addresses that are of no use. */
void readers_tidy(struct readers *all, int64_t now_ms);

#endif
