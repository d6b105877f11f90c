/* A GitHub that costs next to nothing: it takes repository_dispatch calls, counts them, and knows
 * from each delivery (bench.h) when its webhook was due. Repositories are bench/r0, bench/r1, …
 *
 *   usage: sink [DELAY_MS]      prints its port, then serves 127.0.0.1 until SIGTERM
 *
 *   POST /repos/…/dispatches    204, DELAY_MS later
 *   GET  /_stats                what came since the last /_reset
 *
 * One thread; a request is answered when it is whole. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "support/bench.h"

#define REQUEST_MAX (128 << 10) /* GitHub takes 64 KB of payload */
#define REPOS       64
#define BODIES      4096
#define EVENTS      64

struct connection {
    struct connection *prev, *next; /* among the late; FIFO, as the delay is the same for all */
    int64_t due_us;
    int fd;
    bool late;
    size_t have;
    char in[REQUEST_MAX];
};

struct stats {
    long calls, dispatches, out_of_order;
    int64_t first_us, last_us, longest_gap_us;
    struct samples latency;
    long last[REPOS][BODIES]; /* number of the webhook sent last, by repository and body */
};

static const char no_content[] = "HTTP/1.1 204 No Content\r\n\r\n";
static struct stats stats;
static int64_t delay_us;
static struct connection *late;
static volatile sig_atomic_t stopping;

static void on_signal(int number)
{
    (void)number;
    stopping = 1;
}

/* ---- answers ---- */

static void reply_text(const struct connection *c, const char *text, size_t n)
{
    if (send(c->fd, text, n, MSG_NOSIGNAL) != (ssize_t)n)
        perror("sink: send");
}

static void reply_json(const struct connection *c, const char *status, const char *json)
{
    char text[1024];
    int n =
        snprintf(text, sizeof(text),
                 "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                 status, strlen(json), json);
    reply_text(c, text, (size_t)n);
}

static void reply_stats(const struct connection *c)
{
    char json[512];
    snprintf(json, sizeof(json),
             "{\"calls\":%ld,\"dispatches\":%ld,\"out_of_order\":%ld,\"seconds\":%.6f,"
             "\"longest_gap_ms\":%.1f,\"p50_us\":%" PRId64 ",\"p99_us\":%" PRId64 "}",
             stats.calls, stats.dispatches, stats.out_of_order,
             (double)(stats.last_us - stats.first_us) / 1e6, (double)stats.longest_gap_us / 1e3,
             samples_quantile(&stats.latency, 0.5), samples_quantile(&stats.latency, 0.99));
    reply_json(c, "200 OK", json);
}

static void reset(void)
{
    samples_clear(&stats.latency);
    memset(&stats, 0, sizeof(stats));
    memset(stats.last, -1, sizeof(stats.last));
}

/* ---- requests ---- */

static void count(const char *path, const char *body, size_t len, int64_t now_us)
{
    static const char name[] = "\"delivery_id\":\"";
    struct mark mark;
    long repo = 0;

    if (stats.dispatches++ == 0)
        stats.first_us = stats.last_us = now_us;
    if (now_us - stats.last_us > stats.longest_gap_us)
        stats.longest_gap_us = now_us - stats.last_us;
    stats.last_us = now_us;
    const char *at = memmem(body, len < 256 ? len : 256, name, sizeof(name) - 1);
    if (!at || !mark_read(&mark, at + sizeof(name) - 1))
        return;
    samples_add(&stats.latency, now_us - mark.due_us);
    sscanf(path, "/repos/bench/r%ld/", &repo);
    long *last = &stats.last[repo % REPOS][mark.body % BODIES];
    stats.out_of_order += mark.number < *last;
    *last = mark.number;
}

static void answer(struct connection *c, size_t head, size_t body)
{
    int64_t now_us = clock_mono_us();
    char *path = strchr(c->in, ' ') + 1;
    char *end = strchr(path, ' ');
    size_t len = (size_t)(end - path);

    if (path[1] != '_')
        stats.calls++;
    if (len > 11 && !memcmp(end - 11, "/dispatches", 11)) {
        count(path, c->in + head, body, now_us);
        c->due_us = now_us + delay_us;
        if (delay_us) {
            c->late = true;
            DL_APPEND(late, c);
        } else {
            reply_text(c, no_content, sizeof(no_content) - 1);
        }
    } else if (len > 14 && !memcmp(end - 14, "/access_tokens", 14)) {
        reply_json(c, "201 Created",
                   "{\"token\":\"ghs_bench\",\"expires_at\":\"2099-01-01T00:00:00Z\"}");
    } else if (len > 13 && !memcmp(end - 13, "/installation", 13)) {
        reply_json(c, "200 OK", "{\"id\":1,\"app_id\":1}");
    } else if (!memcmp(path, "/_stats", 7)) {
        reply_stats(c);
    } else {
        if (!memcmp(path, "/_reset", 7))
            reset();
        reply_json(c, "200 OK", "{}");
    }
}

/* Length of the request in front of the buffer, or 0 while it is not whole. */
static size_t request_length(const struct connection *c, size_t *head)
{
    const char *end = memmem(c->in, c->have, "\r\n\r\n", 4);
    size_t body = 0;

    if (!end)
        return 0;
    *head = (size_t)(end - c->in) + 4;
    for (const char *line = c->in; line < end; line = strstr(line, "\r\n") + 2)
        if (!strncasecmp(line, "content-length:", 15))
            body = strtoul(line + 15, NULL, 10);
    return c->have >= *head + body ? *head + body : 0;
}

static void close_connection(struct connection *c)
{
    if (c->late)
        DL_DELETE(late, c);
    close(c->fd);
    free(c);
}

static void read_requests(struct connection *c)
{
    size_t head = 0, whole;
    ssize_t n = recv(c->fd, c->in + c->have, sizeof(c->in) - 1 - c->have, 0);

    if (n <= 0) {
        close_connection(c);
        return;
    }
    c->have += (size_t)n;
    c->in[c->have] = '\0';
    while ((whole = request_length(c, &head))) {
        answer(c, head, whole - head);
        c->have -= whole;
        memmove(c->in, c->in + whole, c->have + 1);
    }
    if (c->have == sizeof(c->in) - 1)
        bench_die("sink: a request of more than %d bytes", REQUEST_MAX);
}

/* Milliseconds until the next late answer; -1: none. */
static int answer_late(void)
{
    while (late && late->due_us <= clock_mono_us()) {
        struct connection *c = late;
        DL_DELETE(late, c);
        c->late = false;
        reply_text(c, no_content, sizeof(no_content) - 1);
    }
    return late ? (int)((late->due_us - clock_mono_us()) / 1000) + 1 : -1;
}

/* ---- sockets ---- */

static int listen_somewhere(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (bind(fd, (struct sockaddr *)&address, len) || listen(fd, 512))
        bench_die("sink: cannot listen");
    getsockname(fd, (struct sockaddr *)&address, &len);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

static void accept_one(int listener, int set)
{
    int one = 1, fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    struct connection *c = mem_alloc(1, sizeof(*c));
    c->fd = fd;
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = c };
    epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
}

int main(int argc, char **argv)
{
    struct epoll_event events[EVENTS], event = { .events = EPOLLIN };
    struct sigaction action = { .sa_handler = on_signal };

    delay_us = argc > 1 ? bench_number(argv[1], 0) * 1000 : 0;
    sigaction(SIGTERM, &action, NULL);
    reset();
    int set = epoll_create1(EPOLL_CLOEXEC), listener = listen_somewhere();
    epoll_ctl(set, EPOLL_CTL_ADD, listener, &event);
    while (!stopping) {
        int n = epoll_wait(set, events, EVENTS, answer_late());
        for (int i = 0; i < n; i++)
            if (events[i].data.ptr)
                read_requests(events[i].data.ptr);
            else
                accept_one(listener, set);
    }
    return 0;
}
