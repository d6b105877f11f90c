/* Which dispatch of ours a callback answers, for which pull request and commit, and how that is
 * known. Nothing of it comes from the callback's body, except the commit of a self-report; `self`
 * then says so to whoever reads the record. PURE.
 *
 *   nightly, periodic ─▶ self       callback_token ─▶ token (a bad one: 403)
 *   otherwise the dispatch record in Redis: there ─▶ record
 *                                           Redis unavailable or its view inconsistent ─▶ pending
 *                                           not there ─▶ pending within 60 s of the delivery, 400
 */
#ifndef CRCR_INGEST_PROVENANCE_H
#define CRCR_INGEST_PROVENANCE_H

#include "../common/crypto/callback_token.h"
#include "../common/model/callback.h"
#include "../common/view/claims.h"
#include "answer.h"

#define PROVENANCE_GRACE_MS 60000

enum provenance_kind {
    PROVENANCE_TOKEN,
    PROVENANCE_RECORD,
    PROVENANCE_PENDING,
    PROVENANCE_SELF,
};
const char *provenance_name(enum provenance_kind kind); /* "token", "record", "pending", "self" */

struct provenance {
    enum provenance_kind kind;
    int64_t pr;                 /* 0: none, or not known yet */
    char head_sha[SHA_MAX + 1]; /* SELF: not proven, "" when the body names none; else proven */
    int64_t dispatched_ms;      /* 0: not known yet */
};

void provenance_of_self(const struct callback *fields, struct provenance *ret);
/* token: verified. False: 403, it names another delivery or repository. */
bool provenance_of_token(const struct callback *fields, struct str repo,
                         const struct callback_token *token, struct provenance *ret,
                         struct answer *a) MUST_CHECK;

enum lookup_result {
    LOOKUP_UNAVAILABLE, /* Redis did not answer */
    LOOKUP_NO_EPOCH,    /* the view is being rebuilt */
    LOOKUP_NONE,        /* the view is consistent, and has no such record */
    LOOKUP_FOUND,
};
struct dispatch_lookup {
    enum lookup_result result;
    struct dispatch_record record; /* FOUND */
};
bool provenance_of_lookup(const struct callback *fields, const struct dispatch_lookup *lookup,
                          int64_t now_ms, struct provenance *ret, struct answer *a) MUST_CHECK;

/* When a delivery was created: GitHub's delivery ids are UUIDs of version 1, which hold the time
 * (RFC 9562 section 5.1). False for other ids. */
bool delivery_time(struct str delivery, int64_t *wall_ms);

#endif
