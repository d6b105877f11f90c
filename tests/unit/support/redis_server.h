/* A real redis-server of a test's own: a free port, nothing on disk, gone when the test ends. */
#ifndef CRCR_TESTS_REDIS_SERVER_H
#define CRCR_TESTS_REDIS_SERVER_H

#include <stdint.h>
#include <sys/types.h>

struct redis_server {
    pid_t pid;
    char endpoint[32]; /* host:port */
};

static inline void redis_server_start(struct redis_server *s);
static inline void redis_server_kill(struct redis_server *s);

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"

#define REDIS_SERVER_LIMIT_MS 20000

static inline int redis_server_connect(uint16_t port)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int failed = connect(fd, (struct sockaddr *)&to, sizeof(to));
    close(fd);
    return failed;
}

static inline uint16_t redis_server_free_port(void)
{
    struct sockaddr_in at = { .sin_family = AF_INET };
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    close(fd);
    return ntohs(at.sin_port);
}

static inline void redis_server_start(struct redis_server *s)
{
    char port[8];
    uint16_t number = redis_server_free_port();
    int64_t deadline_ms = clock_mono_ms() + REDIS_SERVER_LIMIT_MS;
    snprintf(port, sizeof(port), "%u", number);
    snprintf(s->endpoint, sizeof(s->endpoint), "127.0.0.1:%u", number);
    s->pid = fork();
    assert_true(s->pid >= 0);
    if (s->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
        execlp("redis-server", "redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "",
               "--appendonly", "no", "--dir", "/tmp", /* as the logins of deploy may do */
               "--user", "default", "on", "nopass", "~crcr:*", "&*", "+@all", (char *)NULL);
        perror("redis-server (apt install redis-server)");
        _exit(127);
    }
    while (redis_server_connect(number)) {
        int status;
        if (waitpid(s->pid, &status, WNOHANG) == s->pid)
            fail_msg("redis-server ended with status %d before it answered", status);
        if (clock_mono_ms() > deadline_ms)
            fail_msg("redis-server does not answer on port %s", port);
        usleep(5000);
    }
}

static inline void redis_server_kill(struct redis_server *s)
{
    if (s->pid > 0) {
        kill(s->pid, SIGKILL);
        waitpid(s->pid, NULL, 0);
    }
    s->pid = 0;
}

#endif
