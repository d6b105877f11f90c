/* Tokens as they arrive: peeked into as an OIDC token, verified as a callback_token. Nobody but
 * the holder of the key can make one that is taken: the corpus has the only ones. */
#include <stdint.h>
#include <stdlib.h>

#include "common/crypto/callback_token.h"
#include "common/crypto/jwt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct callback_keys *keys;
    struct str text = { (const char *)data, size };
    struct callback_token token;
    struct jwt *jwt = NULL;
    struct why why;
    if (!keys && callback_keys_new(&keys, STR_LIT("k1:0123456789abcdef0123456789abcdef"), &why))
        abort();
    if (!jwt_read(&jwt, text, &why))
        (void)jwt_claim(jwt, "iss");
    jwt_free(jwt);
    if (!callback_token_verify(keys, text, 1700000000, &token, &why) &&
        token.expires_s <= 1700000000)
        abort();
    return 0;
}
