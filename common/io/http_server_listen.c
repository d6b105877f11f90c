#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http_server_inner.h"

enum { BACKLOG = 1024, HOST_SIZE = 256, PORT_SIZE = 6 };

/* "host:port" → the two parts, brackets of an IPv6 address taken off. */
static enum err split(const char *text, char host[HOST_SIZE], char port[PORT_SIZE], struct why *why)
{
    const char *colon = strrchr(text, ':');
    uint64_t number;
    if (!colon || colon == text || !str_to_u64(str_of(colon + 1), &number) || number > 65535)
        return why_set(why, ERR_REFUSE, "listen address '%s' is not host:port or [IPv6]:port",
                       text);
    struct str h = { text, (size_t)(colon - text) };
    bool bracketed = h.len > 2 && h.ptr[0] == '[' && h.ptr[h.len - 1] == ']';
    if (bracketed)
        h = (struct str){ h.ptr + 1, h.len - 2 };
    if ((!bracketed && str_find(h, ':') >= 0) || !str_copy(host, HOST_SIZE, h))
        return why_set(why, ERR_REFUSE, "listen address '%s': an IPv6 address needs brackets",
                       text);
    str_copy(port, PORT_SIZE, str_of(colon + 1));
    return OK;
}

static int socket_open(const struct addrinfo *a)
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

static int port_of(int fd)
{
    struct sockaddr_storage at = { 0 };
    socklen_t len = sizeof(at);
    if (getsockname(fd, (struct sockaddr *)&at, &len))
        return 0;
    return ntohs(at.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&at)->sin6_port
                                          : ((struct sockaddr_in *)&at)->sin_port);
}

enum err http_server_listen(const char *listen_on, int *fd, int *port, struct why *why)
{
    char host[HOST_SIZE], service[PORT_SIZE];
    enum err err = split(listen_on, host, service, why);
    if (err)
        return err;
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE }, *found = NULL;
    int failed = getaddrinfo(host, service, &hints, &found);
    if (failed)
        return why_set(why, ERR_REFUSE, "listen address '%s': %s", listen_on, gai_strerror(failed));
    int opened = -1;
    for (struct addrinfo *a = found; a && opened < 0; a = a->ai_next)
        opened = socket_open(a);
    int reason = errno;
    freeaddrinfo(found);
    if (opened < 0)
        return why_set(why, ERR_STOP, "cannot listen on %s: %s", listen_on, strerror(reason));
    *fd = opened;
    *port = port_of(opened);
    return OK;
}
