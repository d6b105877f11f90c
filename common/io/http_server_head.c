#include "http_server_head.h"

#include <microhttpd.h>
#include <string.h>

#include "../base/str.h"

enum { CONTENT_LENGTH, TRANSFER_ENCODING, ONCE = 5 };

static const char *const once[ONCE] = { "Content-Length", "Transfer-Encoding", "Host",
                                        "Authorization", "X-Hub-Signature-256" };

struct headers_seen {
    bool header[ONCE];
    const char *fault; /* the first */
};

struct http_escaped http_target_escaped(const char *target)
{
    struct http_escaped found = { false, false };
    for (const char *at = target; *at && *at != '?'; at++) {
        if (at[0] != '%')
            continue;
        found.nul |= at[1] == '0' && at[2] == '0';
        found.slash |= at[1] == '2' && (at[2] == 'f' || at[2] == 'F');
    }
    return found;
}

/* RFC 9110 section 5.6.2. */
static bool is_token(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i], lower = (char)(c | 0x20);
        if (!(lower >= 'a' && lower <= 'z') && !(c >= '0' && c <= '9') &&
            !(c && strchr("!#$%&'*+-.^_`|~", c)))
            return false;
    }
    return s.len > 0;
}

static bool has_control(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (((unsigned char)s.ptr[i] < ' ' && s.ptr[i] != '\t') || s.ptr[i] == 0x7f)
            return true;
    return false;
}

static const char *header_fault(struct headers_seen *seen, struct str name, struct str value)
{
    if (!is_token(name))
        return "a header's name is malformed";
    if (has_control(value))
        return "a header holds a control character";
    for (size_t i = 0; i < ONCE; i++) {
        if (!str_eq_nocase(name, str_of(once[i])))
            continue;
        if (seen->header[i])
            return "a header that decides came twice";
        seen->header[i] = true;
        if (i == TRANSFER_ENCODING && !str_eq_nocase(value, STR_LIT("chunked")))
            return "only chunked is taken as Transfer-Encoding";
    }
    return NULL;
}

static enum MHD_Result on_header(void *opaque, enum MHD_ValueKind kind, const char *name,
                                 size_t name_len, const char *value, size_t value_len)
{
    struct headers_seen *seen = opaque;
    (void)kind;
    seen->fault =
        header_fault(seen, (struct str){ name, name_len }, (struct str){ value, value_len });
    return seen->fault ? MHD_NO : MHD_YES;
}

const char *http_head_fault(struct MHD_Connection *connection, const char *version)
{
    struct headers_seen seen = { .fault = NULL };
    MHD_get_connection_values_n(connection, MHD_HEADER_KIND, on_header, &seen);
    if (seen.fault || !seen.header[TRANSFER_ENCODING])
        return seen.fault;
    if (seen.header[CONTENT_LENGTH])
        return "Transfer-Encoding and Content-Length exclude each other";
    return strcmp(version, MHD_HTTP_VERSION_1_0) == 0 ? "HTTP/1.0 has no Transfer-Encoding" : NULL;
}
