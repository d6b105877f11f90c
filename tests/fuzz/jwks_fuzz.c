/* JWK Sets as an issuer publishes them. A token that was signed with one key is taken with a set
 * that has that key, and with no other. */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/crypto/jwt.h"
#include "input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Signed once with a key that nobody has any more; corpus/jwks/right is its public half. */
static const char token[] =
    "eyJhbGciOiJSUzI1NiIsImtpZCI6ImZ1enoiLCJ0eXAiOiJKV1QifQ.eyJpc3MiOiJodHRwczovL2lzc3Vlci5le"
    "GFtcGxlIiwiYXVkIjoiY3JjciIsImlhdCI6MTYwMDAwMDAwMCwiZXhwIjo0MDAwMDAwMDAwfQ.ehVHbSDJBnV8DM"
    "pFchSqeg-1sJR7-dptfr7hHkRZcxPl1nxHmzEiXKW9576jbXqVG3sYInNOCXaEMDaWiOZ-l_g7YHinXif_pF2gth"
    "GgB_meriA7Kfir2h5XFvLMgzTj22IwqcPq9UoGXsFUicufKBz5v_14eLNUtXzu89nQM5KqrCue3aqni6SHLHPZK-"
    "5AzRRnS5jzdUDKYsNuU7mrWQGUSt4oP7upY0s6BKg8kmYh4i3qbSD7O-GGeX0o_ZjZm7D8q9lyD8wn7zEHihxcw8"
    "tIRIl3sfWIWB0sM4KyOWBEVy3LRNpE5PouylMaEeXOCo2k6eFEEb6FJ5V8E39InQ";
static const char modulus[] =
    "1RuS6IxjpPxqGnh470ojSYgkqiiQElV1CnHrTqSeX_M3YUdDCrCo6jSuP6Fc3-Y8K0oeDOpxjOOolhsu1zD4jbaI"
    "8yJMxGvJinLc9_KO470IGWP224pFSc-K0ehhg-_6oLZ5NKHy_SYNy_WguC7fyP3TLMU_erZmS5y8tr-A9Y7tUIYZ"
    "4VPLWW7X5hclq5BGr0IGAiz6u3f8NGwnEtjWtsO1ay2cqT5tNcSoZUHMIsK5JSjTL3pAeQjPl-EGthLGd1CixLXV"
    "g9V1qnOXSZQkbSQ7jZtAxZGHNnm4YUQTDVYi";

/* The set names our modulus, however it is escaped; blanks in front of a number are zeros. */
static bool has_modulus(struct str text)
{
    json_t *set = json_loadb(text.ptr, text.len, JSON_REJECT_DUPLICATES, NULL), *key;
    bool has = false;
    size_t i;
    json_array_foreach(json_object_get(set, "keys"), i, key)
    {
        const char *n = json_string_value(json_object_get(key, "n"));
        has |= n && strstr(n, modulus);
    }
    json_decref(set);
    return has;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct jwks *set = NULL;
    struct why why;
    struct jwt *jwt = NULL;
    struct str text = { (const char *)data, size };
    if (jwks_parse(&set, text, &why)) {
        must(!set && !strchr(why.text, '\n'));
        return 0;
    }
    (void)jwks_has(set, STR_LIT(""));
    must(!jwt_read(&jwt, str_of(token), &why));
    if (!jwt_verify_rs256(jwt, set, "crcr", 1700000000, 60, &why))
        must(jwks_has(set, STR_LIT("fuzz")) && has_modulus(text));
    jwt_free(jwt);
    jwks_free(set);
    return 0;
}
