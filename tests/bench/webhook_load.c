/* GitHub as the sender of webhooks: signed pull_request webhooks at a fixed rate, whatever the
 * receiver does (an open model: what waits for a connection is late, and that counts).
 *
 *   usage: webhook_load PORT SECRET BODIES RATE COUNT CONNECTIONS [own]
 *
 * own: each is of a pull request of its own: its number, of seven digits, is written into the body,
 * which is signed anew. Of events of one pull request that wait, only the last is sent on.
 * RATE 0 keeps all connections busy: that finds what the receiver can take, and says nothing about
 * latency. Prints {"accepted", "refused", "seconds", "cpu_us", "p50_us", "p99_us"}, the latencies
 * from when each was due to its answer. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utlist.h>

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/crypto/hmac.h"
#include "support/bench.h"

#define ANSWER_MAX 2048
#define EVENTS     64
#define OWN_DIGITS 7

struct connection {
    struct connection *next; /* among the idle */
    int fd;
    int64_t due_us; /* of the webhook under way; 0: idle */
    size_t have;
    char in[ANSWER_MAX + 1];
};

struct load {
    uint16_t port;
    const char *secret;
    struct bodies bodies;
    char (*signatures)[SHA256_HEX_SIZE];
    long rate, count, sent, accepted, refused;
    bool own;
    int64_t started_us;
    int set;
    struct connection *all, *idle;
    struct samples latency;
};

/* ---- connections ---- */

static void connect_one(struct load *l, struct connection *c)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(l->port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = c };
    int one = 1;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(c->fd, (struct sockaddr *)&address, sizeof(address)))
        bench_die("cannot connect to port %u", l->port);
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    epoll_ctl(l->set, EPOLL_CTL_ADD, c->fd, &event);
    LL_PREPEND(l->idle, c);
}

/* Waits while the receiver reads slowly; what becomes due meanwhile is late. */
static void send_all(int fd, struct iovec *parts)
{
    while (parts[0].iov_len + parts[1].iov_len) {
        ssize_t n = writev(fd, parts, 2);
        if (n <= 0)
            bench_die("the receiver closed a connection");
        for (int i = 0; i < 2; i++) {
            size_t used = (size_t)n < parts[i].iov_len ? (size_t)n : parts[i].iov_len;
            parts[i].iov_base = (char *)parts[i].iov_base + used;
            parts[i].iov_len -= used;
            n -= (ssize_t)used;
        }
    }
}

/* Writes another number for that of the body, wherever it stands, and signs it. */
static void make_own(struct load *l, size_t i)
{
    struct str body = l->bodies.at[i], rest = body;
    ptrdiff_t number = str_find_str(body, STR_LIT("\"number\":"));
    char old[OWN_DIGITS + 1], own[OWN_DIGITS + 1];
    if (number < 0 || number + 9 + OWN_DIGITS > (ptrdiff_t)body.len)
        bench_die("a body has no number of %d digits", OWN_DIGITS);
    memcpy(old, body.ptr + number + 9, OWN_DIGITS);
    old[OWN_DIGITS] = '\0';
    snprintf(own, sizeof(own), "%07ld", 5000000 + l->sent % 1000000);
    for (ptrdiff_t at; (at = str_find_str(rest, str_of(old))) >= 0;
         rest = str_from(rest, (size_t)at + OWN_DIGITS))
        memcpy((char *)(uintptr_t)rest.ptr + at, own, OWN_DIGITS);
    hmac_sha256_hex(str_of(l->secret), body, l->signatures[i]);
}

static void send_webhook(struct load *l, int64_t due_us)
{
    struct connection *c = l->idle;
    size_t i = (size_t)l->sent % l->bodies.n;
    struct str body = l->bodies.at[i];
    if (l->own)
        make_own(l, i);
    char head[1024], delivery[MARK_SIZE];
    LL_DELETE(l->idle, c);
    c->due_us = due_us;
    mark_write(delivery, &(struct mark){ due_us, l->sent, (long)i });
    int n = snprintf(head, sizeof(head),
                     "POST /github/webhook HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\n"
                     "User-Agent: GitHub-Hookshot/bench\r\nContent-Type: application/json\r\n"
                     "X-GitHub-Event: pull_request\r\nX-GitHub-Delivery: %s\r\n"
                     "X-Hub-Signature-256: sha256=%s\r\nContent-Length: %zu\r\n\r\n",
                     delivery, l->signatures[i], body.len);
    struct iovec parts[] = { { head, (size_t)n }, { (void *)(uintptr_t)body.ptr, body.len } };
    send_all(c->fd, parts);
    l->sent++;
}

/* True once the answer in front of the buffer is whole. */
static bool answered(const struct connection *c)
{
    const char *end = strstr(c->in, "\r\n\r\n");
    const char *length = strcasestr(c->in, "\r\ncontent-length:");
    if (!end || !length)
        return false;
    return c->have >= (size_t)(end - c->in) + 4 + strtoul(length + 17, NULL, 10);
}

static void read_answer(struct load *l, struct connection *c)
{
    ssize_t n = recv(c->fd, c->in + c->have, ANSWER_MAX - c->have, 0);
    if (n == 0 && !c->due_us) { /* it was idle: a head has 10 s */
        close(c->fd);
        LL_DELETE(l->idle, c);
        connect_one(l, c);
        return;
    }
    if (n <= 0)
        bench_die("the receiver closed a connection");
    c->have += (size_t)n;
    c->in[c->have] = '\0';
    if (!answered(c))
        return;
    bool taken = !strncmp(c->in, "HTTP/1.1 202", 12);
    l->accepted += taken;
    l->refused += !taken;
    samples_add(&l->latency, clock_mono_us() - c->due_us);
    c->have = 0;
    c->due_us = 0;
    LL_PREPEND(l->idle, c);
}

/* ---- the load ---- */

static int64_t due_of(const struct load *l)
{
    return l->rate ? l->started_us + l->sent * INT64_C(1000000) / l->rate : clock_mono_us();
}

static void run(struct load *l)
{
    struct epoll_event events[EVENTS];
    while (l->accepted + l->refused < l->count) {
        struct timespec wait = { .tv_sec = 1 };
        while (l->sent < l->count && l->idle && due_of(l) <= clock_mono_us())
            send_webhook(l, due_of(l));
        int64_t left_us = due_of(l) - clock_mono_us();
        if (l->sent < l->count && l->idle && left_us < 1000000)
            wait = (struct timespec){ .tv_nsec = left_us > 0 ? left_us * 1000 : 0 };
        int n = epoll_pwait2(l->set, events, EVENTS, &wait, NULL);
        for (int i = 0; i < n; i++)
            read_answer(l, events[i].data.ptr);
    }
}

static void load_init(struct load *l, char **argv)
{
    *l = (struct load){ .port = (uint16_t)bench_number(argv[1], 1),
                        .secret = argv[2],
                        .own = argv[7] && strcmp(argv[7], "own") == 0,
                        .rate = bench_number(argv[4], 0),
                        .count = bench_number(argv[5], 1),
                        .set = epoll_create1(EPOLL_CLOEXEC) };
    bodies_read(&l->bodies, argv[3]);
    l->signatures = mem_alloc(l->bodies.n, sizeof(*l->signatures));
    for (size_t i = 0; i < l->bodies.n; i++)
        hmac_sha256_hex(str_of(argv[2]), l->bodies.at[i], l->signatures[i]);
    size_t n = (size_t)bench_number(argv[6], 1);
    l->all = mem_alloc(n, sizeof(*l->all));
    for (size_t i = 0; i < n; i++)
        connect_one(l, &l->all[i]);
}

int main(int argc, char **argv)
{
    struct load l;
    if (argc != 7 && argc != 8)
        bench_die("usage: webhook_load PORT SECRET BODIES RATE COUNT CONNECTIONS [own]");
    load_init(&l, argv);
    int64_t cpu_us = bench_cpu_us();
    l.started_us = clock_mono_us();
    run(&l);
    printf("{\"accepted\":%ld,\"refused\":%ld,\"seconds\":%.6f,\"cpu_us\":%" PRId64
           ",\"p50_us\":%" PRId64 ",\"p99_us\":%" PRId64 "}\n",
           l.accepted, l.refused, (double)(clock_mono_us() - l.started_us) / 1e6,
           bench_cpu_us() - cpu_us, samples_quantile(&l.latency, 0.5),
           samples_quantile(&l.latency, 0.99));
    free(l.all);
    free(l.signatures);
    samples_clear(&l.latency);
    bodies_clear(&l.bodies);
    return 0;
}
