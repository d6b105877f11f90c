#include "gzip.h"

#include <assert.h>
#include <string.h>
#include <zlib.h>

#include "../../common/base/mem.h"

#define WINDOW_GZIP (MAX_WBITS + 16) /* zlib.h: with gzip's header and trailer */
#define MEM_LEVEL   8                /* its default */

struct str gzip_pack(struct str body)
{
    z_stream z = { .next_in = (Bytef *)(uintptr_t)body.ptr, .avail_in = (uInt)body.len };
    int ready = deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WINDOW_GZIP, MEM_LEVEL,
                             Z_DEFAULT_STRATEGY);
    assert(ready == Z_OK); /* else there is no memory */
    z.avail_out = (uInt)deflateBound(&z, body.len);
    char *packed = mem_resize(NULL, z.avail_out, 1);
    z.next_out = (Bytef *)packed;
    int done = deflate(&z, Z_FINISH);
    assert(done == Z_STREAM_END);
    deflateEnd(&z);
    return (struct str){ mem_resize(packed, z.total_out, 1), z.total_out };
}

struct str gzip_unpack(struct str packed)
{
    const unsigned char *size = (const unsigned char *)packed.ptr + packed.len - 4; /* its end */
    size_t len = size[0] | size[1] << 8 | size[2] << 16 | (size_t)size[3] << 24;
    char *body = mem_resize(NULL, len + 1, 1);
    z_stream z = { .next_in = (Bytef *)(uintptr_t)packed.ptr,
                   .avail_in = (uInt)packed.len,
                   .next_out = (Bytef *)body,
                   .avail_out = (uInt)len };
    int ready = inflateInit2(&z, WINDOW_GZIP), done = inflate(&z, Z_FINISH);
    assert(ready == Z_OK && done == Z_STREAM_END);
    inflateEnd(&z);
    return (struct str){ body, len };
}

/* "q=0", "q=0.000": not at all. */
static bool is_refused(struct str weight)
{
    while (weight.len && strchr(" \tqQ=0.", weight.ptr[0]))
        weight = str_from(weight, 1);
    return weight.len == 0;
}

bool gzip_accepted(struct str accept_encoding)
{
    struct str one, name;
    bool any = false;
    while (str_split(&accept_encoding, ',', &one)) {
        bool accepted = !(str_split(&one, ';', &name) && one.ptr && is_refused(one));
        name = str_trim(name);
        if (str_eq_nocase(name, STR_LIT("gzip")) || str_eq_nocase(name, STR_LIT("x-gzip")))
            return accepted;
        if (str_is(name, "*"))
            any = accepted;
    }
    return any;
}
