/* OIDC tokens of callers: issuers, their keys, and the check of a token. A thread of its own
 * fetches the keys: at the start, every hour, and when a token names a key that is not there (at
 * most every 30 s an issuer). Keys are kept while their issuer is down. All functions may be called
 * from any thread. */
#ifndef CRCR_INGEST_OIDC_H
#define CRCR_INGEST_OIDC_H

#include "../common/base/str.h"
#include "answer.h"

#define OIDC_LEEWAY_S 60

struct oidc;
struct jwt;

struct oidc_options {    /* borrowed for the call */
    const char *issuers; /* "issuer=jwks-url owner owner,issuer=jwks-url" */
    const char *audience;
    const char *ca_file; /* NULL: the system's */
    bool allow_http;     /* plain http to hosts other than loopback */
    bool check_only;     /* nothing is started */
    int unknown_kid_ms;  /* 0: 30,000. How long after a fetch an unknown key causes no other */
};

/* ERR_REFUSE: the issuers are malformed, a URL is not allowed, or one other than GitHub and
 * Buildkite has no owners. */
enum err oidc_new(struct oidc **ret, const struct oidc_options *options,
                  struct why *why) MUST_CHECK;
/* Wakes the threads that wait in oidc_verify. NULL is fine. */
void oidc_free(struct oidc *o);

/* That tokens must name; lives as long as o. */
const char *oidc_audience(const struct oidc *o);
/* Checks a token's form, algorithm and issuer. Cheap, and proves nothing. False: 401. */
bool oidc_glance(const struct oidc *o, struct str token, struct answer *a) MUST_CHECK;
enum oidc_result {
    OIDC_VERIFIED,
    OIDC_REFUSED, /* 401: it is bad */
    OIDC_NO_KEYS, /* 503: its key is not known, and the issuer did not answer within wait_ms */
};
/* Verifies the token. VERIFIED: *ret is the caller's to free, *issuer lives as long as o, *a is
 * untouched. Otherwise *a says why not. */
enum oidc_result oidc_verify(struct oidc *o, struct str token, int wait_ms, struct jwt **ret,
                             struct str *issuer, struct answer *a) MUST_CHECK;

/* Whether that issuer, from oidc_verify, may speak for the owner of owner/repo. GitHub and
 * Buildkite may for every owner: their tokens prove it, or the providers file does. False: 403. */
bool oidc_owner_check(const struct oidc *o, struct str issuer, struct str repo,
                      struct answer *a) MUST_CHECK;

/* For metrics: the i-th issuer and the age of its keys (-1: none yet); false past the last. */
bool oidc_age(struct oidc *o, size_t i, struct str *issuer, double *age_s);

#endif
