/* Webhook signatures:
 * https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries PURE. */
#ifndef CRCR_INGEST_SIGNATURE_H
#define CRCR_INGEST_SIGNATURE_H

#include "../common/base/err.h"
#include "../common/base/str.h"

#define SIGNATURE_MAX_SECRETS 8

/* GITHUB_APP_SECRET: one secret, or several separated by commas while they are being changed. */
struct signature_secrets {
    char *text;
    struct str at[SIGNATURE_MAX_SECRETS]; /* into text */
    size_t n;
};

/* ERR_REFUSE (the text is not repeated in why): no secret, an empty one, or too many. */
enum err signature_secrets_init(struct signature_secrets *s, const char *text,
                                struct why *why) MUST_CHECK;
/* Wipes them. */
void signature_secrets_clear(struct signature_secrets *s);

/* True and the digits when header is "sha256=" and 64 hex digits. */
bool signature_form(struct str header, struct str *hex);
/* True when hex is the HMAC-SHA256 of body under one of the secrets. Constant time for each. */
bool signature_matches(const struct signature_secrets *s, struct str body, struct str hex);

#endif
