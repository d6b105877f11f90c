#include "signature.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "../common/base/mem.h"
#include "../common/crypto/hmac.h"

enum err signature_secrets_init(struct signature_secrets *s, const char *text, struct why *why)
{
    *s = (struct signature_secrets){ .text = mem_dup(text) };
    struct str rest = str_of(s->text), part;
    while (str_split(&rest, ',', &part)) {
        part = str_trim(part);
        if (part.len == 0 || s->n == SIGNATURE_MAX_SECRETS) {
            signature_secrets_clear(s);
            return why_set(why, ERR_REFUSE,
                           "GITHUB_APP_SECRET: 1 to %d secrets separated by commas, none empty",
                           SIGNATURE_MAX_SECRETS);
        }
        s->at[s->n++] = part;
    }
    if (s->n > 0)
        return OK;
    signature_secrets_clear(s);
    return why_set(why, ERR_REFUSE, "GITHUB_APP_SECRET is empty");
}

void signature_secrets_clear(struct signature_secrets *s)
{
    mem_free_secret(s->text);
    *s = (struct signature_secrets){ 0 };
}

bool signature_form(struct str header, struct str *hex)
{
    const char prefix[] = "sha256=";
    if (!str_starts(header, prefix))
        return false;
    struct str digits = str_from(header, sizeof(prefix) - 1);
    if (digits.len != 64)
        return false;
    for (size_t i = 0; i < digits.len; i++)
        if (!isxdigit((unsigned char)digits.ptr[i]))
            return false;
    *hex = digits;
    return true;
}

bool signature_matches(const struct signature_secrets *s, struct str body, struct str hex)
{
    for (size_t i = 0; i < s->n; i++)
        if (hmac_sha256_matches(s->at[i], body, hex))
            return true;
    return false;
}
