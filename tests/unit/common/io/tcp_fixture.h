/* A server that takes connections and says nothing, and what its client set on its own socket. */
#ifndef CRCR_TESTS_TCP_FIXTURE_H
#define CRCR_TESTS_TCP_FIXTURE_H

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TCP_FDS_MAX = 1024 };

/* It takes little of what comes, as one does that the network is cut off from. */
static inline int tcp_listen_slow(int *port)
{
    struct sockaddr_in at = { .sin_family = AF_INET };
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), small = 4096;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, len), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    *port = ntohs(at.sin_port);
    return fd;
}

/* TCP's user timeout of this process's connection to that port; -1: there is none yet. */
static inline int tcp_user_timeout_to(int port)
{
    for (int fd = 0; fd < TCP_FDS_MAX; fd++) {
        struct sockaddr_in to = { .sin_family = AF_UNSPEC };
        socklen_t len = sizeof(to), size = sizeof(int);
        int ms;
        if (!getpeername(fd, (struct sockaddr *)&to, &len) && to.sin_family == AF_INET &&
            ntohs(to.sin_port) == port &&
            !getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, &size))
            return ms;
    }
    return -1;
}

#endif
