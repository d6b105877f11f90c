/* Hands requests from the HTTP server's thread to the simulator's own: from there on everything
 * happens on one thread and nothing else needs a lock. */
#ifndef CRCR_SIM_INBOX_H
#define CRCR_SIM_INBOX_H

#include "../../common/base/wake.h"
#include "../../common/io/http_server.h"

struct inbox;

/* wake is borrowed and signalled with each request. */
struct inbox *inbox_new(struct wake *wake);
/* Refuses what nobody took. NULL is fine. */
void inbox_free(struct inbox *in);
/* Answers 503 to all that is there. */
void inbox_refuse(struct inbox *in);
/* From the server's thread. */
void inbox_put(struct inbox *in, struct http_exchange *x);
/* The next request in order of arrival, or NULL. */
struct http_exchange *inbox_take(struct inbox *in);

#endif
