#include "host_port.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 1024 };

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

static int listener_open(const struct addrinfo *a)
{
    int one = 1;
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int reason = errno;
    close(fd);
    errno = reason;
    return -1;
}

enum err host_port_listen(const char *text, int *fd, int *port, struct why *why)
{
    struct host_port at;
    enum err err = host_port_parse(text, &at, why);
    if (err)
        return why_prefix(why, err, "listen");
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE }, *found = NULL;
    int failed = getaddrinfo(at.host, at.port, &hints, &found);
    if (failed)
        return why_set(why, ERR_REFUSE, "listen address '%s': %s", text, gai_strerror(failed));
    int opened = -1;
    for (struct addrinfo *a = found; a && opened < 0; a = a->ai_next)
        opened = listener_open(a);
    int reason = errno;
    freeaddrinfo(found);
    if (opened < 0)
        return why_set(why, ERR_STOP, "cannot listen on %s: %s", text, strerror(reason));
    struct sockaddr_storage bound = { 0 };
    socklen_t len = sizeof(bound);
    (void)getsockname(opened, (struct sockaddr *)&bound, &len);
    *fd = opened;
    *port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
                                              : ((struct sockaddr_in *)&bound)->sin_port);
    return OK;
}
