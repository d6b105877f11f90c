/* What the files of the HTTP client share; nobody else includes this. */
#ifndef CRCR_IO_HTTP_CLIENT_INNER_H
#define CRCR_IO_HTTP_CLIENT_INNER_H

#include "../base/buf.h"
#include "http_client.h"

struct curl_slist;

/* One request and its answer. Kept after the answer, with its curl handle and its memory, for the
 * next request. */
struct http_call {
    void *easy; /* CURL * */
    struct curl_slist *headers;
    http_answered_fn *done;
    void *opaque;
    int64_t started_us, known_ms;
    bool is_post;
    bool begun;     /* curl was about to send: from here on the request may have arrived */
    bool resend;    /* curl wanted to send it once more and was stopped */
    bool too_large; /* the answer */
    bool old;       /* of before a standstill: not sent */
    struct standstill *standstill; /* the client's; NULL: it does not matter */
    struct buf head;               /* header lines of the answer as they came */
    struct buf body;
    char reason[256]; /* CURL_ERROR_SIZE */
    struct http_call *prev, *next;
};

/* http_client_call.c */
struct http_call *http_call_new(void);
void http_call_free(struct http_call *call);
/* Gives back large buffers before a pause. */
void http_call_rest(struct http_call *call);
/* Prepares the handle for a request whose URL has been checked. */
enum err http_call_set(struct http_call *call, const struct http_client_options *options,
                       const struct http_request *request, struct why *why) MUST_CHECK;
/* Tells the owner how it ended; code is a CURLcode. */
void http_call_answer(struct http_call *call, int code);
/* Tells the owner that nobody will know. */
void http_call_give_up(struct http_call *call);

#endif
