#include "host_port.h"

#include <string.h>

enum err host_port_parse(const char *text, struct host_port *to, struct why *why)
{
    const char *colon = strrchr(text, ':');
    struct str host = { text, colon ? (size_t)(colon - text) : 0 };
    struct str port = str_of(colon ? colon + 1 : "");
    struct host_port parsed;
    uint64_t number;
    bool bracketed = host.len > 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']';
    if (bracketed)
        host = (struct str){ host.ptr + 1, host.len - 2 };
    if (!host.len || !str_to_u64(port, &number) || number > 65535 ||
        !str_copy(parsed.port, sizeof(parsed.port), port) ||
        !str_copy(parsed.host, sizeof(parsed.host), host))
        return why_set(why, ERR_REFUSE, "address '%s' is not host:port or [IPv6]:port", text);
    if (strpbrk(parsed.host, "[]") || (!bracketed && strchr(parsed.host, ':')))
        return why_set(why, ERR_REFUSE, "address '%s': an IPv6 address needs brackets", text);
    *to = parsed;
    return OK;
}
