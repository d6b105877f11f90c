/* A redis-server of the test's own on a free port, killed by its pid. */
#ifndef CRCR_TESTS_REDIS_SERVER_FIXTURE_H
#define CRCR_TESTS_REDIS_SERVER_FIXTURE_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/io/redis.h"

enum { LIMIT_MS = 20000 };

struct fixture {
    pid_t server;
    char dir[64];
    char port[8];
    char endpoint[32];
    char tls_port[8]; /* "": none */
    struct redis *r;
};

static inline void free_port(char port[8])
{
    struct sockaddr_in at = { .sin_family = AF_INET };
    socklen_t len = sizeof(at);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    snprintf(port, 8, "%d", ntohs(at.sin_port));
    close(fd);
}

/* In the child: becomes the server, and dies with the test. */
static inline void become_server(const struct fixture *f, const char *password)
{
    int null = open("/dev/null", O_WRONLY);
    dup2(null, STDOUT_FILENO);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const char *tls_port = *f->tls_port ? f->tls_port : "0";
    execlp("redis-server", "redis-server", "--port", f->port, "--bind", "127.0.0.1", "--dir",
           f->dir, "--save", "", "--appendonly", "no", "--requirepass", password, "--tls-port",
           tls_port, "--tls-cert-file", "server.pem", "--tls-key-file", "server.pem",
           "--tls-ca-cert-file", "server.pem", "--tls-auth-clients", "no", (char *)NULL);
    fprintf(stderr, "redis-server cannot be started (apt install redis-server): %s\n",
            strerror(errno));
    _exit(127);
}

static inline bool answers(const struct fixture *f)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(f->port)) };
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bool is = connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0;
    close(fd);
    return is;
}

static inline void server_start(struct fixture *f, const char *password)
{
    int64_t until_ms = clock_mono_ms() + LIMIT_MS;
    f->server = fork();
    assert_true(f->server >= 0);
    if (f->server == 0)
        become_server(f, password);
    while (!answers(f)) {
        int status;
        if (waitpid(f->server, &status, WNOHANG) == f->server)
            fail_msg("redis-server ended with status %d before it answered", status);
        if (clock_mono_ms() > until_ms)
            fail_msg("redis-server does not answer on port %s", f->port);
        usleep(5000);
    }
}

static inline void server_kill(struct fixture *f)
{
    if (f->server > 0) {
        kill(f->server, SIGKILL);
        waitpid(f->server, NULL, 0);
    }
    f->server = 0;
}

#endif
