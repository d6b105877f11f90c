/* Webhooks as forms. A body that GitHub sends as JSON or as a form, as the App is configured, is
 * the same event: same answer, same key, same headers, same value. The first byte chooses the kind
 * of event, the second how the form is written; the rest is the body, which is also read as a form
 * as it is. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/crypto/hmac.h"
#include "ingest/webhook.h"
#include "input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct webhook_rules rules = { .events.upstream_repo = { "pytorch/pytorch", 15 } };

static const char *const kinds[] = { "pull_request", "push", "check_run", "check_suite", "ping" };

/* style: bit 0 all bytes in hex, bit 1 lower case hex, bit 2 a blank as %20, bits 3 and 4 fields
 * before and behind. */
static void encode(struct buf *to, struct str body, unsigned style)
{
    buf_puts(to, style & 8 ? "payloads=%7B%7D&" : "");
    buf_puts(to, "payload=");
    for (size_t i = 0; i < body.len; i++) {
        unsigned char c = (unsigned char)body.ptr[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (c == ' ' && !(style & 5))
            buf_putc(to, '+');
        else if (plain && !(style & 1))
            buf_putc(to, (char)c);
        else
            buf_printf(to, style & 2 ? "%%%02x" : "%%%02X", c);
    }
    buf_puts(to, style & 16 ? "&x=%7B" : "");
}

static bool check(const char *kind, const char *type, struct str body, struct webhook_record *to,
                  struct answer *v)
{
    char signature[7 + SHA256_HEX_SIZE] = "sha256=";
    hmac_sha256_hex(rules.secrets.at[0], body, signature + 7);
    const struct webhook_head head = { .signature = str_of(signature),
                                       .event = str_of(kind),
                                       .delivery = STR_LIT("72d3162e-cc78-11e3-81ab-4c9367dc0958"),
                                       .content_type = str_of(type) };
    return webhook_check(&rules, &head, body, 1700000000000, to, v);
}

static void both_ways(const char *kind, struct str body, unsigned style)
{
    static struct webhook_record json, form;
    struct answer said, said_of_form;
    struct buf text;
    buf_init(&text, 1u << 24);
    encode(&text, body, style);
    bool taken = check(kind, "application/json", body, &json, &said);
    must(check(kind, "Application/X-www-form-urlencoded ; charset=utf-8", buf_str(&text), &form,
               &said_of_form) == taken);
    if (taken) {
        struct headers of_json, of_form;
        headers_init(&of_json);
        headers_init(&of_form);
        event_to_headers(&json.event, &of_json);
        event_to_headers(&form.event, &of_form);
        must(of_json.n == of_form.n && str_eq(buf_str(&json.key), buf_str(&form.key)));
        for (size_t i = 0; i < of_json.n; i++)
            must(str_eq(of_json.at[i].value, of_form.at[i].value));
        must(!json.decoded && str_eq(body, (struct str){ form.decoded, form.decoded_len }));
        webhook_record_clear(&json);
        webhook_record_clear(&form);
    } else {
        must(said.status == said_of_form.status && strcmp(said.reason, said_of_form.reason) == 0 &&
             strcmp(said.text, said_of_form.text) == 0);
    }
    buf_clear(&text);
}

/* As it is: what is taken is no longer than what came, and the same when it is written again. */
static void as_form(struct str body)
{
    char *text = NULL, *again = NULL;
    size_t len, len_again;
    struct why why;
    struct buf form;
    if (form_payload(body, &text, &len, &why))
        return;
    must(len <= body.len && text[len] == '\0');
    buf_init(&form, 1u << 24);
    encode(&form, (struct str){ text, len }, 0);
    must(!form_payload(buf_str(&form), &again, &len_again, &why));
    must(str_eq((struct str){ text, len }, (struct str){ again, len_again }));
    buf_clear(&form);
    free(again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct why why;
    if (!rules.secrets.n)
        must(!signature_secrets_init(&rules.secrets, "a secret of GitHub's", &why));
    if (size < 2)
        return 0;
    struct str body = { (const char *)data + 2, size - 2 };
    both_ways(kinds[data[0] % (sizeof(kinds) / sizeof(kinds[0]))], body, data[1]);
    as_form(body);
    return 0;
}
