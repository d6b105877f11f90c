/* Tokens that no honest issuer makes: any header, any payload, signed with HMAC or not at all. */
#ifndef CRCR_TESTS_CRYPTO_FORGE_H
#define CRCR_TESTS_CRYPTO_FORGE_H

#include <string.h>

#include "common/base/buf.h"
#include "common/crypto/hmac.h"

static inline void base64url_put(struct buf *to, struct str s)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    for (size_t i = 0; i < s.len; i += 3) {
        size_t n = s.len - i < 3 ? s.len - i : 3;
        uint32_t bits = 0;
        for (size_t k = 0; k < 3; k++)
            bits = bits << 8 | (k < n ? (unsigned char)s.ptr[i + k] : 0);
        for (size_t k = 0; k <= n; k++)
            buf_putc(to, digits[bits >> (18 - 6 * k) & 63]);
    }
}

/* header.payload.signature; secret absent: an empty signature. The caller frees it. */
static inline char *forge(const char *header, const char *payload, struct str secret)
{
    struct buf b;
    buf_init(&b, 1 << 20);
    base64url_put(&b, str_of(header));
    buf_putc(&b, '.');
    base64url_put(&b, str_of(payload));
    if (secret.ptr) {
        char hex[SHA256_HEX_SIZE], mac[32];
        hmac_sha256_hex(secret, buf_str(&b), hex);
        for (size_t i = 0; i < 32; i++) {
            int high = hex[2 * i] <= '9' ? hex[2 * i] - '0' : hex[2 * i] - 'a' + 10;
            int low = hex[2 * i + 1] <= '9' ? hex[2 * i + 1] - '0' : hex[2 * i + 1] - 'a' + 10;
            mac[i] = (char)(high << 4 | low);
        }
        buf_putc(&b, '.');
        base64url_put(&b, (struct str){ mac, sizeof(mac) });
    } else {
        buf_putc(&b, '.');
    }
    return buf_take(&b, NULL);
}

#endif
