/* One request as the simulator's nouns see it, and the answer that they build. */
#ifndef CRCR_SIM_CALL_H
#define CRCR_SIM_CALL_H

#include "../../common/base/err.h"
#include "../../common/base/headers.h"

typedef struct json_t json_t;
struct sim;

#define CALL_PARTS 3

/* All borrowed; valid while the handler runs. */
struct call {
    struct str method;
    struct str path;
    struct str owner, name;      /* of /repos/<owner>/<name>/…; else absent */
    struct str repo;             /* "<owner>/<name>" */
    struct str part[CALL_PARTS]; /* what the further stars of the route matched */
    const struct headers *headers;
    const struct headers *query;
    struct str text;      /* the body as it came */
    json_t *body;         /* the body as a document; NULL: none, or not JSON */
    int64_t installation; /* whose token signed; 0: none, or the App itself */
    int64_t now_ms;       /* wall clock */
};

/* The text of a member of the body, or STR_NONE when it is absent or no string. */
struct str call_text(const struct call *call, const char *member);
/* A part of the path as a number; -1 when it is none. */
int64_t call_id(const struct call *call, size_t part);
/* A parameter of the query as a number. */
int64_t call_query(const struct call *call, const char *name, int64_t fallback);

struct reply {
    int status;
    json_t *body; /* a document, or NULL */
    char *text;   /* instead of a document */
    size_t text_len;
    const char *content_type; /* a literal; NULL: application/json */
    json_t *headers;          /* name → text */
};

void reply_init(struct reply *r);
void reply_clear(struct reply *r);
/* Replaces what was there; the document is taken over. */
void reply_json(struct reply *r, int status, json_t *body);
/* Takes over text, a malloc'ed block. */
void reply_text(struct reply *r, int status, const char *content_type, char *text, size_t len);
void reply_empty(struct reply *r, int status);
/* {"message", "documentation_url", "status"}, as GitHub's errors are. */
void reply_error(struct reply *r, int status, const char *format, ...) PRINTF_LIKE(3, 4);
void reply_header(struct reply *r, const char *name, const char *format, ...) PRINTF_LIKE(3, 4);

typedef void handler_fn(struct sim *sim, const struct call *call, struct reply *reply);

#endif
