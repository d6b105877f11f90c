/* The steps of a callback that need no I/O, one function each, numbered as in callback_route.c.
 * That file asks Redis, the allowlist and the issuers between them. PURE. */
#ifndef CRCR_INGEST_CALLBACK_H
#define CRCR_INGEST_CALLBACK_H

#include "../common/base/buf.h"
#include "../common/base/headers.h"
#include "../common/model/allowlist.h"
#include "../common/model/callback.h"
#include "answer.h"
#include "provenance.h"

/* The answer to what is not stored; reason: "not_listed", "level_1", "event_not_wanted". */
#define CALLBACK_IGNORED(reason) "{\"ok\":true,\"status\":\"ignored\",\"reason\":\"" reason "\"}"

/* Step 1, the form: "Bearer <token>". */
bool callback_bearer(struct str authorization, struct str *token, struct answer *a) MUST_CHECK;

/* A body that is JSON. A fault of its fields is kept for step 6. */
struct callback_body {
    struct callback fields;
    bool fields_valid;
    struct why fault;
};
/* Step 5. attempt: the token's claim, or "". True: *ret is the caller's to clear. */
bool callback_body_read(struct str body, struct str attempt, struct callback_body *ret,
                        struct answer *a) MUST_CHECK;
void callback_body_clear(struct callback_body *body);

/* Step 3. list NULL: no allowlist was read yet. True: *entry is the repo's, of level 2 or more. */
bool callback_admit(const struct allowlist *list, struct str repo,
                    const struct allowlist_entry **entry, struct answer *a) MUST_CHECK;

/* Step 6. */
bool callback_fields_check(const struct callback_body *body, const struct allowlist_entry *entry,
                           struct answer *a) MUST_CHECK;

/* The answer to what is stored. */
void callback_answer(struct buf *to, const char *status, const struct callback *fields);

/* What the record's headers say beside the fields. Strings are borrowed. */
struct callback_origin {
    struct str repo; /* as the allowlist writes it */
    int level;
    struct str issuer;
    struct str run_attempt; /* the token's claim; empty: it has none */
    int64_t received_ms;
};
void callback_key(struct buf *to, const struct callback *fields, struct str repo);
void callback_to_headers(const struct callback *fields, const struct callback_origin *origin,
                         const struct provenance *provenance, struct headers *to);

#endif
