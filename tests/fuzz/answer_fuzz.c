/* What GitHub answers, read by the PURE parsers: a line with the status, lines of headers, an empty
 * line, the body. crcrctl's list of deliveries is read from the same body. */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/github/comments.h"
#include "common/github/github.h"
#include "common/github/pulls.h"
#include "common/io/retry_after.h"
#include "deploy/crcrctl/deliveries.h"
#include "input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NOW_MS 1790000000000
#define DAY_MS 86400000

static bool is_text(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ')
            return false;
    return true;
}

/* Nobody is believed further than a day, and a limit is waited for. */
static void check_answer(int status, const struct headers *headers, struct str body)
{
    struct github_answer a;
    char reason[512] = "";
    github_classify(status, headers, body, NOW_MS, &a);
    must(a.err <= ERR_UNKNOWN);
    must(!a.err == ((status >= 200 && status < 300) || status == 304));
    must(!a.because || (a.err == ERR_RETRY && a.because == GATE_RATE_LIMIT));
    must(!a.wait_until_ms ||
         (a.wait_until_ms >= NOW_MS + 1000 && a.wait_until_ms <= NOW_MS + DAY_MS));
    must(!a.next_page.ptr || a.next_page.ptr[0] == '/');
    must(a.budget_reset_ms >= 0);
    struct str below = github_page_below(a.next_page, "https://ghes.example/api/v3");
    must(!below.ptr || below.ptr[0] == '/');
    github_explain(&a, body, STR_LIT("org/repo"), reason, sizeof(reason));
    must(strlen(reason) < sizeof(reason) && is_text(reason));
    int64_t until_ms;
    if (retry_after(headers, NOW_MS, &until_ms))
        must(until_ms <= NOW_MS + DAY_MS && headers_get(headers, "Retry-After").len);
}

static void check_pull(struct str body, struct str webhook)
{
    struct pull pull;
    struct why why;
    struct buf event;
    if (!pull_read(body, &pull, &why))
        must(pull.number > 0 && pull.head_sha[0]);
    buf_init(&event, 1u << 24);
    if (!pull_event(body, webhook, &event, &why)) {
        json_t *made = json_loadb(event.ptr, event.len, JSON_ALLOW_NUL, NULL);
        must(json_is_object(json_object_get(made, "pull_request")));
        json_decref(made);
    }
    buf_clear(&event);
}

static void check_comments(struct str body)
{
    char *text = NULL;
    int64_t id;
    if (comments_page_read(body, "12345", STR_LIT("<!-- crcr -->"), &id, &text))
        must(id >= 0 && (id > 0) == !!text && (!text || str_starts(str_of(text), "<!-- crcr -->")));
    free(text);
}

static void check_deliveries(struct str body)
{
    struct deliveries d;
    struct delivery **missing = NULL;
    struct buf sum;
    struct why why;
    bool older;
    deliveries_init(&d);
    buf_init(&sum, 4096);
    (void)!deliveries_add(&d, body, NOW_MS - DAY_MS, NOW_MS, &older, &why);
    (void)!deliveries_add(&d, body, NOW_MS - DAY_MS, NOW_MS, &older, &why); /* pages overlap */
    must(deliveries_missing(&d, &missing) == deliveries_count(&d, DELIVERY_MISSING));
    deliveries_sum(&d, true, &sum);
    must(!buf_full(&sum));
    free(missing);
    buf_clear(&sum);
    deliveries_clear(&d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = { (const char *)data, size };
    struct headers headers;
    int64_t status = 0;
    (void)str_to_i64(input_line(&text), &status);
    input_headers(&text, &headers);
    struct str body = input_rest(text);
    check_answer((int)(status & 0xffff), &headers, body);
    check_pull(body, STR_LIT("{\"repository\":{\"id\":1},\"sender\":null}"));
    check_pull(STR_LIT("{\"number\":1}"), body);
    check_comments(body);
    check_deliveries(body);
    return 0;
}
