/* What the tests of the HTTP server and client share: blocking requests, raw sockets, waiting. */
#ifndef CRCR_TESTS_HTTP_FIXTURE_H
#define CRCR_TESTS_HTTP_FIXTURE_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/io/http_client.h"

enum { TEST_LIMIT_MS = 20000 }; /* a test that waits longer has failed */

/* What came back for one request, with the body copied. */
struct got {
    int calls;
    enum err err;
    int status;
    int http_version;
    char body[4096];
    size_t body_len;
    char allow[64];
    char retry_after[16];
    char reason[256];
};

static inline void got_answer(void *opaque, const struct http_answer *a)
{
    struct got *g = opaque;
    g->calls++;
    g->err = a->err;
    g->status = a->status;
    g->http_version = a->http_version;
    g->body_len = a->body.len;
    str_copy(g->body, sizeof(g->body), a->body);
    str_copy(g->allow, sizeof(g->allow), headers_get(a->headers, "Allow"));
    str_copy(g->retry_after, sizeof(g->retry_after), headers_get(a->headers, "Retry-After"));
    str_copy(g->reason, sizeof(g->reason), str_of(a->reason));
}

/* Polls until nothing is in flight; false when that took too long. */
static inline bool client_finish(struct http_client *c)
{
    int64_t until_ms = clock_mono_ms() + TEST_LIMIT_MS;
    size_t left = http_client_poll(c, NULL, 0);
    while (left > 0 && clock_mono_ms() < until_ms)
        left = http_client_poll(c, NULL, 100);
    return left == 0;
}

/* One request to 127.0.0.1:port and its answer. */
static inline struct got fetch(struct http_client *c, int port, const char *method,
                               const char *path, struct str body)
{
    struct got g = { 0 };
    char url[512];
    struct why why = { "" };
    snprintf(url, sizeof(url), "http://127.0.0.1:%d%s", port, path);
    struct http_request r = { .method = method, .url = url, .body = body };
    g.err = http_client_start(c, &r, got_answer, &g, &why);
    int64_t until_ms = clock_mono_ms() + TEST_LIMIT_MS;
    while (!g.err && !g.calls && clock_mono_ms() < until_ms)
        http_client_poll(c, NULL, 100);
    return g;
}

static inline struct http_client *client_new(void)
{
    struct http_client *c = NULL;
    struct why why;
    struct http_client_options o = { .user_agent = "test" };
    return !http_client_new(&c, &o, &why) ? c : NULL;
}

/* A raw TCP connection to 127.0.0.1:port, with a receive time-out. */
static inline int raw_connect(int port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    struct timeval limit = { .tv_sec = TEST_LIMIT_MS / 1000 };
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0)
        return fd;
    close(fd);
    return -1;
}

static inline bool raw_send(int fd, const char *text)
{
    return send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text);
}

/* Reads until the text has come; false at the end of the stream. */
static inline bool raw_expect(int fd, const char *text)
{
    char seen[8192];
    size_t len = 0;
    while (len < sizeof(seen) - 1) {
        ssize_t n = recv(fd, seen + len, sizeof(seen) - 1 - len, 0);
        if (n <= 0)
            return false;
        len += (size_t)n;
        seen[len] = '\0';
        if (strstr(seen, text))
            return true;
    }
    return false;
}

/* True when the other side closes (in order or by a reset) and sends nothing more. */
static inline bool raw_closed(int fd)
{
    char rest[4096];
    ssize_t n;
    while ((n = recv(fd, rest, sizeof(rest), 0)) > 0)
        ;
    struct pollfd p = { .fd = fd, .events = POLLIN };
    return n == 0 || (n < 0 && poll(&p, 1, 0) == 1);
}

#endif
