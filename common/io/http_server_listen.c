#include <errno.h>
#include <linux/filter.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host_port.h"
#include "http_server_inner.h"

enum { BACKLOG = 1024 };

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
    struct host_port at;
    enum err err = host_port_parse(listen_on, &at, why);
    if (err)
        return why_prefix(why, err, "listen");
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE }, *found = NULL;
    int failed = getaddrinfo(at.host, at.port, &hints, &found);
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

void http_server_turn_away(int fd)
{
    static struct sock_filter drop_syn[] = {
        /* it is given what begins with the TCP header */
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 13), /* its flags */
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, TH_SYN, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
    };
    struct sock_fprog program = { sizeof(drop_syn) / sizeof(drop_syn[0]), drop_syn };
    (void)setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}
