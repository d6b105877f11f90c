/* live.c behind a real server, with a clock and renderings of the test's own: nothing waits for
 * time to pass. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <sched.h>
#include <stdatomic.h>
#include <cmocka.h>

#include "common/base/mem.h"
#include "common/daemon/daemon_private.h"
#include "reporter/web/paths.h"
#include "reporter/web/web.h"
#include "tests/unit/support/http_fixture.h"

#define BEGIN_MS    1000000
#define DEADLINE_MS 100

/* What live.c has instead of the clock and the view. */
static struct {
    atomic_llong clock_ms;
    atomic_llong takes_ms; /* a rendering, by that clock */
    atomic_bool blocks;    /* and no rendering ends before it is false */
    atomic_int rendered;   /* begun */
} world;

static int64_t world_mono_ms(void)
{
    return atomic_load(&world.clock_ms);
}

static int world_render(const struct web_view *w, const struct path_ask *ask, struct buf *to,
                        struct why *why)
{
    (void)w;
    (void)why;
    atomic_fetch_add(&world.rendered, 1);
    while (atomic_load(&world.blocks))
        sched_yield();
    atomic_fetch_add(&world.clock_ms, atomic_load(&world.takes_ms));
    buf_printf(to, "{\"id\":\"%.*s\"}", STR_ARG(ask->id));
    return 200;
}

/* Whose request it is says its header; else all come from here. */
static struct str world_address(const struct http_exchange *x, char to[HTTP_ADDRESS_SIZE])
{
    struct str from = http_header(x, "X-From");
    return from.ptr ? from : http_address(x, to);
}

#define clock_mono_ms  world_mono_ms
#define http_address   world_address
#define path_render    world_render
#define redis_is_up(r) ((void)(r), true)
#include "reporter/web/live.c" /* its inside is looked at */
#include "reporter/web/readers.c"
#undef clock_mono_ms
#undef http_address

struct scene {
    struct daemon_ctx daemon;
    struct role_ctx role;
    struct live *live;
    struct http_server *server;
    struct http_client *client;
    int port;
    struct http_exchange *_Atomic late;
};

static void on_get(void *opaque, struct http_exchange *x)
{
    struct scene *s = opaque;
    struct path_ask ask;
    struct headers query;
    http_queries(x, &query);
    if (path_ask_init(&ask, http_path(x), &query))
        live_ask(s->live, x, &ask);
    else
        live_wait(s->live, x);
}

static void on_late(void *opaque, struct http_exchange *x)
{
    ((struct scene *)opaque)->late = x;
}

static const struct http_route routes[] = {
    { .method = "GET", .path = "/late", .handle = on_late, .deadline_ms = DEADLINE_MS },
    { .method = "GET", .path = "/*", .handle = on_get },
};

static int begin(void **state)
{
    static const struct role role = { "web", "", web_run };
    struct scene *s = mem_alloc(1, sizeof(*s));
    const struct web_view view = { .redis = NULL };
    const struct http_server_options options = { .listen = "127.0.0.1:0",
                                                 .routes = routes,
                                                 .n_routes = sizeof(routes) / sizeof(routes[0]),
                                                 .opaque = s };
    struct why why = { "" };
    atomic_store(&world.clock_ms, BEGIN_MS);
    atomic_store(&world.takes_ms, 0);
    atomic_store(&world.blocks, false);
    atomic_store(&world.rendered, 0);
    s->daemon.metrics = metrics_new(reporter_metrics, METRIC_COUNT);
    assert_int_equal(role_init(&s->role, &role, &s->daemon, &why), OK);
    assert_int_equal(live_new(&s->live, &view, &s->role, &why), OK);
    assert_int_equal(http_server_new(&s->server, &options, &why), OK);
    s->port = http_server_port(s->server);
    const struct http_client_options many = { .user_agent = "test", .max_connections_host = 200 };
    assert_int_equal(http_client_new(&s->client, &many, &why), OK);
    *state = s;
    return 0;
}

static int end(void **state)
{
    struct scene *s = *state;
    atomic_store(&world.blocks, false);
    http_client_free(s->client);
    live_leave(s->live);
    http_server_free(s->server, 5000);
    live_free(s->live);
    role_clear(&s->role);
    metrics_free(s->daemon.metrics);
    free(s);
    return 0;
}

static void start_from(struct scene *s, const char *from, const char *path, struct got *got)
{
    char url[512];
    struct why why = { "" };
    struct headers h;
    headers_init(&h);
    headers_put(&h, "X-From", str_of(from));
    snprintf(url, sizeof(url), "http://127.0.0.1:%d%s", s->port, path);
    const struct http_request r = { .method = "GET", .url = url, .headers = &h };
    assert_int_equal(http_client_start(s->client, &r, got_answer, got, &why), OK);
}

static void start(struct scene *s, const char *path, struct got *got)
{
    start_from(s, NULL, path, got);
}

/* Waits until so many have been begun to be rendered, ask for another, and wait for a change. */
static void wait_hands(struct scene *s, int rendered, int asking, int waiting)
{
    int64_t until_ms = clock_mono_ms() + TEST_LIMIT_MS;
    int n_asking = -1, n_waiting = -1;
    while (
        (atomic_load(&world.rendered) != rendered || n_asking != asking || n_waiting != waiting) &&
        clock_mono_ms() < until_ms) {
        struct reader *r, *same;
        http_client_poll(s->client, NULL, 5);
        pthread_mutex_lock(&s->live->lock);
        n_asking = 0;
        DL_FOREACH(s->live->readers.asking, r)
        {
            for (same = r; same; same = same->same)
                n_asking++;
        }
        n_waiting = (int)s->live->readers.n_waiting;
        pthread_mutex_unlock(&s->live->lock);
    }
    assert_int_equal(atomic_load(&world.rendered), rendered);
    assert_int_equal(n_asking, asking);
    assert_int_equal(n_waiting, waiting);
}

static int counted(struct scene *s, const char *route, const char *status)
{
    return (int)metrics_value(s->daemon.metrics, METRIC_PAGES,
                              METRIC_LABELS(str_of(route), str_of(status)));
}

/* Asks for the first pull request, and says which digest its answer has. */
static void first_page(struct scene *s, char etag[PAGE_ETAG_SIZE])
{
    struct got got = fetch(s->client, s->port, "GET", "/api/crcr/prs/1", STR_NONE);
    assert_int_equal(got.status, 200);
    page_etag(etag, (struct str){ got.body, got.body_len });
}

/* The thread is busy with the second one until world.blocks is false. */
static void keep_busy(struct scene *s, int rendered, struct got *got)
{
    atomic_store(&world.blocks, true);
    start(s, "/api/crcr/prs/2", got);
    wait_hands(s, rendered, 0, 0);
}

static void let_go(struct scene *s)
{
    atomic_store(&world.blocks, false);
    assert_true(client_finish(s->client));
}

static void wait_answer(struct scene *s, const struct got *got, int status)
{
    int64_t until_ms = clock_mono_ms() + TEST_LIMIT_MS;
    while (got->calls == 0 && clock_mono_ms() < until_ms)
        http_client_poll(s->client, NULL, 5);
    assert_int_equal(got->calls, 1);
    assert_int_equal(got->status, status);
}

/* Lets the thread go on until that one is answered; others wait. */
static void let_go_one(struct scene *s, const struct got *got)
{
    atomic_store(&world.blocks, false);
    wait_answer(s, got, 200);
}

static void a_page_that_renders_slowly_is_rendered_once_for_all_who_ask(void **state)
{
    enum { N = 4 };
    struct scene *s = *state;
    struct got got[N] = { 0 };
    atomic_store(&world.takes_ms, 3000);
    atomic_store(&world.blocks, true);
    for (int i = 0; i < N; i++) {
        start(s, "/api/crcr/prs/1", &got[i]);
        wait_hands(s, 1, i, 0);
    }
    let_go(s);
    for (int i = 0; i < N; i++)
        assert_string_equal(got[i].body, "{\"id\":\"1\"}");
    assert_int_equal(atomic_load(&world.rendered), 1);
}

static void who_has_an_old_answer_is_sent_the_event_while_the_thread_is_busy(void **state)
{
    struct scene *s = *state;
    struct got other = { 0 };
    char etag[PAGE_ETAG_SIZE], event[128];
    first_page(s, etag);
    keep_busy(s, 2, &other);
    struct got got =
        fetch(s->client, s->port, "GET", "/api/crcr/live?of=/api/crcr/prs/1&etag=old", STR_NONE);
    snprintf(event, sizeof(event), "retry: 500\nid: %s\nevent: changed\ndata: {}\n\n", etag);
    assert_string_equal(got.body, event);
    assert_int_equal(other.calls, 0);
    let_go(s);
}

static void only_what_was_looked_at_within_the_20_s_is_said_to_be_unchanged(void **state)
{
    struct scene *s = *state;
    struct got other = { 0 }, seen = { 0 }, unseen = { 0 };
    char etag[PAGE_ETAG_SIZE], path[128];
    first_page(s, etag);
    keep_busy(s, 2, &other);
    snprintf(path, sizeof(path), "/api/crcr/live?of=/api/crcr/prs/1&etag=%s", etag);
    start(s, path, &seen);
    wait_hands(s, 2, 0, 1);
    atomic_fetch_add(&world.clock_ms, 1000); /* since the answer was rendered */
    start(s, path, &unseen);
    wait_hands(s, 2, 0, 2);
    atomic_fetch_add(&world.clock_ms, 20000);
    let_go(s);
    assert_string_equal(seen.body, "retry: 500\nevent: unchanged\ndata: {}\n\n");
    assert_string_equal(unseen.body, "retry: 500\nevent: unseen\ndata: {}\n\n");
}

static void who_is_reached_after_12_s_gets_503_without_a_rendering(void **state)
{
    struct scene *s = *state;
    struct got first = { 0 }, second = { 0 };
    keep_busy(s, 1, &first);
    start(s, "/api/crcr/prs/1", &second);
    wait_hands(s, 1, 1, 0);
    atomic_fetch_add(&world.clock_ms, 12000);
    let_go(s);
    assert_int_equal(first.status, 200);
    assert_int_equal(second.status, 503);
    assert_string_equal(second.body, "{\"detail\":\"too late\"}");
    assert_int_equal(atomic_load(&world.rendered), 1);
    int64_t until_ms = clock_mono_ms() + TEST_LIMIT_MS; /* it is counted after it was sent */
    while (counted(s, "pr", "503") == 0 && clock_mono_ms() < until_ms)
        sched_yield();
    assert_int_equal(counted(s, "pr", "503"), 1);
    assert_int_equal(counted(s, "pr", "200"), 1);
}

static void an_answer_that_comes_too_late_is_counted_as_the_503_that_was_sent(void **state)
{
    struct scene *s = *state;
    struct got got = fetch(s->client, s->port, "GET", "/late", STR_NONE);
    assert_int_equal(got.status, 503);
    web_reply(&s->role, s->late, "summary", 200, NULL, STR_LIT("{}"));
    assert_int_equal(counted(s, "summary", "503"), 1);
    assert_int_equal(counted(s, "summary", "200"), 0);
}

/* A stranger's requests are slow to render, and there is always another one. */
static void who_comes_later_is_looked_at_later_and_a_slow_address_rests_alone(void **state)
{
    struct scene *s = *state;
    struct got other = { 0 }, honest[2] = { 0 }, stranger[3] = { 0 };
    const char *const live = "/api/crcr/live?etag=x&of=/api/crcr/prs/%d";
    char path[128];
    keep_busy(s, 1, &other);
    for (int i = 0; i < 3; i++) { /* the first comes before the honest ones */
        snprintf(path, sizeof(path), live, 10 + i);
        start_from(s, "stranger", path, &stranger[i]);
        wait_hands(s, 1, 0, i == 0 ? 1 : i + 3);
        atomic_fetch_add(&world.clock_ms, 10);
        for (int k = 0; i == 0 && k < 2; k++) {
            snprintf(path, sizeof(path), live, 20 + k);
            start_from(s, k ? "b" : "a", path, &honest[k]);
            wait_hands(s, 1, 0, 2 + k);
            atomic_fetch_add(&world.clock_ms, 10);
        }
    }
    atomic_store(&world.takes_ms, 500);
    let_go_one(s, &other);
    let_go_one(s, &stranger[0]); /* in the order of arrival */
    atomic_store(&world.takes_ms, 1);
    atomic_fetch_add(&world.clock_ms, 999);
    assert_int_equal(honest[0].calls, 0); /* all rest for a second, the stranger for 15 */
    atomic_fetch_add(&world.clock_ms, 1);
    let_go_one(s, &honest[0]);
    atomic_fetch_add(&world.clock_ms, 1000);
    let_go_one(s, &honest[1]);
    atomic_fetch_add(&world.clock_ms, 10000);
    wait_hands(s, 4, 0, 2); /* the stranger's other two */
    atomic_fetch_add(&world.clock_ms, 3000);
    let_go_one(s, &stranger[1]);
    assert_int_equal(stranger[2].calls, 0);
    atomic_fetch_add(&world.clock_ms, 20000);
    let_go(s);
}

static void the_address_with_most_gets_503_where_a_hundred_ask(void **state)
{
    enum { N = 101 };
    struct scene *s = *state;
    struct got other = { 0 }, honest[3] = { 0 }, *stranger = mem_alloc(N, sizeof(*stranger));
    char path[64];
    keep_busy(s, 1, &other);
    start_from(s, "a", "/api/crcr/prs/1", &honest[0]);
    wait_hands(s, 1, 1, 0);
    for (int i = 0; i < N; i++) {
        snprintf(path, sizeof(path), "/api/crcr/prs/%d", 1000 + i);
        start_from(s, "stranger", path, &stranger[i]);
        if (i == 97 || i == 98)
            wait_hands(s, 1, i + 2, 0);
        else if (i > 98)
            wait_answer(s, &stranger[i], 503); /* at once */
    }
    assert_string_equal(stranger[99].body, "{\"detail\":\"too many ask\"}");
    start_from(s, "b", "/api/crcr/prs/3", &honest[1]); /* which makes room for itself */
    start_from(s, "b", "/api/crcr/prs/1", &honest[2]); /* for this one there is a place */
    wait_hands(s, 1, 101, 0);
    wait_answer(s, &stranger[98], 503);
    let_go(s);
    for (int i = 0; i < 3; i++)
        assert_int_equal(honest[i].status, 200);
    assert_int_equal(stranger[97].status, 200);
    assert_int_equal(atomic_load(&world.rendered), 1 + 100);
    free(stranger);
}

static void a_value_that_is_not_accepted_is_400_and_not_rendered(void **state)
{
    struct scene *s = *state;
    struct got got = fetch(s->client, s->port, "GET",
                           "/api/crcr/live?etag=x&of=/api/crcr/prs%3Fstate%3Dx", STR_NONE);
    assert_int_equal(got.status, 400);
    assert_string_equal(got.body,
                        "{\"detail\":\"state must be failing, running, passing or all\"}");
    assert_int_equal(atomic_load(&world.rendered), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_page_that_renders_slowly_is_rendered_once_for_all_who_ask),
        TEST(who_has_an_old_answer_is_sent_the_event_while_the_thread_is_busy),
        TEST(only_what_was_looked_at_within_the_20_s_is_said_to_be_unchanged),
        TEST(who_is_reached_after_12_s_gets_503_without_a_rendering),
        TEST(who_comes_later_is_looked_at_later_and_a_slow_address_rests_alone),
        TEST(the_address_with_most_gets_503_where_a_hundred_ask),
        TEST(a_value_that_is_not_accepted_is_400_and_not_rendered),
        TEST(an_answer_that_comes_too_late_is_counted_as_the_503_that_was_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
