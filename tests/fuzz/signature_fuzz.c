/* The heads of requests: a line each for X-Hub-Signature-256, X-GitHub-Event, Content-Type, the
 * target's type and id, Authorization; the rest is the body. Nothing is taken that was not signed
 * with a secret of ours. "*" in the place of the signature stands for the right one. */
#include <stdint.h>
#include <string.h>

#include "common/crypto/hmac.h"
#include "ingest/callback.h"
#include "ingest/webhook.h"
#include "input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct webhook_rules rules = { .app_id = { "12345", 5 } };

static bool is_ours(struct str hex, struct str body)
{
    char right[SHA256_HEX_SIZE];
    bool is = false;
    for (size_t i = 0; i < rules.secrets.n; i++) {
        hmac_sha256_hex(rules.secrets.at[i], body, right);
        is |= str_eq_nocase(hex, str_of(right));
    }
    return is;
}

static void check_webhook(const struct webhook_head *head, struct str body)
{
    static struct webhook_record record;
    struct answer v = { 0 };
    struct str hex = STR_NONE;
    bool formed = signature_form(head->signature, &hex);
    must(!formed || (hex.len == 64 && str_starts(head->signature, "sha256=")));
    bool signed_by_us = formed && is_ours(hex, body);
    if (formed)
        must(signature_matches(&rules.secrets, body, hex) == signed_by_us);
    if (webhook_head_check(&rules, head, &v))
        must(formed && head->event.ptr);
    else
        must(v.status == 400 || v.status == 401);
    if (!webhook_check(&rules, head, body, 1, &record, &v)) {
        must(v.status >= 400 || signed_by_us); /* to ignore is an answer for GitHub only */
        return;
    }
    must(signed_by_us);
    webhook_record_clear(&record);
}

static void check_bearer(struct str authorization)
{
    struct str token;
    struct answer v = { 0 };
    if (!callback_bearer(authorization, &token, &v))
        must(v.status == 401);
    else
        must(authorization.len >= 7 + token.len && str_eq(token, str_trim(token)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct why why;
    struct str text = { (const char *)data, size };
    if (!rules.secrets.n)
        must(!signature_secrets_init(&rules.secrets, "the old secret, the new secret", &why));
    struct webhook_head head = { .delivery = STR_LIT("72d3162e-cc78-11e3-81ab-4c9367dc0958") };
    head.signature = input_line(&text);
    head.event = input_line(&text);
    head.content_type = input_line(&text);
    head.target_type = input_line(&text);
    head.target_id = input_line(&text);
    check_bearer(input_line(&text));
    struct str body = input_rest(text);
    char right[7 + SHA256_HEX_SIZE] = "sha256=";
    if (str_is(head.signature, "*")) {
        hmac_sha256_hex(rules.secrets.at[1], body, right + 7);
        head.signature = str_of(right);
    }
    check_webhook(&head, body);
    return 0;
}
