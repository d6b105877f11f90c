#include "app_api.h"

#include <inttypes.h>
#include <stdlib.h>

#include "../../common/base/clock.h"
#include "../../common/base/mem.h"
#include "../../common/base/url.h"
#include "../../common/github/github.h"

#define MIME_RAW "application/vnd.github.raw+json"
#define TRIES    4
#define PAUSE_MS 1000 /* before the second try; doubled for each one after */
#define QUIET_MS 5000 /* a pause up to that is not worth a line */

struct app_api {
    const struct ctl *ctl;
    char *url;
    struct jwt_key *key;
    struct http_client *client;
    struct github *github;
};

enum err app_api_new(struct app_api **ret, const struct ctl *ctl, struct why *why)
{
    static const char *const needed[] = { "GITHUB_APP_ID", "GITHUB_APP_PRIVATE_KEY" };
    const struct config *config = ctl->config;
    for (size_t i = 0; i < 2; i++)
        if (!str_of(config_text(config, needed[i])).len)
            return why_set(why, ERR_STOP,
                           "%s is not set: it is needed to ask GitHub as the App (a file: %s_FILE)",
                           needed[i], needed[i]);
    const struct http_client_options http = { .user_agent = "crcrctl",
                                              .ca_file = config_text(config, "CRCR_CA_FILE") };
    struct str url = str_of(config_text(config, "CRCR_GITHUB_API_URL"));
    struct app_api *a = mem_alloc(1, sizeof(*a));
    a->ctl = ctl;
    url.len -= str_ends(url, "/");
    a->url = str_dup(url);
    enum err err = jwt_key_new(&a->key, str_of(config_text(config, "GITHUB_APP_PRIVATE_KEY")), why);
    if (err)
        err = why_prefix(why, ERR_STOP, "GITHUB_APP_PRIVATE_KEY");
    else
        err = http_client_new(&a->client, &http, why);
    const struct github_options options = { .api_url = a->url,
                                            .app_id = config_text(config, "GITHUB_APP_ID"),
                                            .key = a->key,
                                            .client = a->client };
    if (!err)
        err = github_new(&a->github, &options, why);
    if (err)
        app_api_free(a);
    else
        *ret = a;
    return err;
}

void app_api_free(struct app_api *a)
{
    if (!a)
        return;
    github_free(a->github);
    http_client_free(a->client);
    jwt_key_free(a->key);
    free(a->url);
    free(a);
}

/* ---- one request ---------------------------------------------------------------------------- */

struct answered {
    bool done;
    struct github_answer answer; /* without its strings, which are gone by now */
    struct buf *body;
    char *cursor; /* may be NULL */
    struct why why;
};

/* "/app/hook/deliveries?per_page=100&cursor=v1_17" → "v1_17": the path itself has the prefix that
 * CRCR_GITHUB_API_URL may have, too. */
static void take_cursor(char to[CURSOR_SIZE], struct str next_page)
{
    static const struct str name = { "cursor=", 7 };
    ptrdiff_t at = str_find_str(next_page, name);
    struct str rest = at < 0 ? STR_NONE : str_from(next_page, (size_t)at + name.len), cursor;
    to[0] = 0;
    if (rest.ptr && str_split(&rest, '&', &cursor))
        (void)str_copy(to, CURSOR_SIZE, cursor);
}

static void on_answer(void *opaque, const struct github_answer *answer)
{
    struct answered *to = opaque;
    to->done = true;
    to->answer = *answer;
    if (answer->err) {
        why_set(&to->why, answer->err, "%s", answer->reason);
        return;
    }
    buf_put(to->body, answer->body);
    if (to->cursor)
        take_cursor(to->cursor, answer->next_page);
}

static enum err ask(struct app_api *a, const struct github_request *request,
                    struct answered *answered)
{
    enum err err = github_start(a->github, request, on_answer, answered, &answered->why);
    if (err)
        return err;
    while (!answered->done && !ctl_stopped())
        http_client_poll(a->client, NULL, 200);
    if (answered->done)
        return answered->answer.err;
    /* on_answer must not be called once answered is gone. */
    github_free(a->github);
    a->github = NULL;
    return why_set(&answered->why, ERR_RETRY, "stopped");
}

/* Waits as GitHub said, or a little longer each time. False when the program is to stop. */
static bool wait_for_next(const struct app_api *a, const struct answered *answered, int try)
{
    const struct github_answer *answer = &answered->answer;
    int64_t wait_ms =
        answer->wait_until_ms ? answer->wait_until_ms - clock_mono_ms() : (int64_t)PAUSE_MS << try;
    if (answer->because == GATE_RATE_LIMIT || wait_ms > QUIET_MS)
        ctl_say(a->ctl, "%s: going on in %" PRId64 " s (%s)",
                answer->because == GATE_RATE_LIMIT ? "GitHub's limit" : "GitHub asks to wait",
                wait_ms / 1000 + 1, answered->why.text);
    return ctl_wait(wait_ms);
}

enum err app_api_get(struct app_api *a, const struct app_request *wanted, struct buf *body,
                     int *status, struct why *why)
{
    const struct github_request request = {
        .auth = wanted->repo.len ? GITHUB_AS_INSTALLATION : GITHUB_AS_APP,
        .method = "GET",
        .repo = wanted->repo,
        .path = wanted->path,
        .accept = wanted->raw ? MIME_RAW : NULL,
        .max_body_bytes = body->max,
    };
    for (int try = 0;; try++) {
        struct answered to = { .body = body, .cursor = wanted->cursor };
        buf_reset(body);
        if (!a->github)
            return why_set(why, ERR_RETRY, "stopped");
        enum err err = ask(a, &request, &to);
        if (status)
            *status = to.answer.status;
        if (!err && buf_full(body))
            return why_set(why, ERR_REFUSE, "GET %s: larger than %zu bytes", request.path,
                           body->max);
        if (!err)
            return OK;
        if (to.answer.because == GATE_RATE_LIMIT)
            try = 0; /* GitHub said to wait, which is no failure */
        if (err == ERR_REFUSE || err == ERR_STOP || try + 1 >= TRIES ||
            (wanted->once && err == ERR_UNKNOWN && to.answer.because != GATE_RATE_LIMIT) ||
            !wait_for_next(a, &to, try)) {
            char shown[300];
            url_shown(shown, sizeof(shown), str_of(a->url));
            why_set(why, err, "%s", to.why.text);
            return why_prefix(why, ctl_stopped() && err == ERR_UNKNOWN ? ERR_RETRY : err,
                              "GET %s%s", shown, request.path);
        }
    }
}
