/* Sends N requests at once with http_client and prints one line of JSON for each answer; before
 * them, when FIRST is 1, one alone, so that the server's SETTINGS are known. For test_http2.py,
 * which holds it against a real HTTP/2 server.
 *
 *     http2_driver CA_FILE URL N BODY_BYTES FIRST */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/json_text.h"
#include "common/io/http_client.h"

static void print_answer(void *opaque, const struct http_answer *a)
{
    struct buf CLEANUP(buf_clear) reason;
    (void)opaque;
    buf_init(&reason, 4096);
    json_text_put(&reason, str_of(a->reason));
    printf("{\"err\": \"%s\", \"status\": %d, \"version\": %d, \"bytes\": %zu, \"reason\": %s}\n",
           err_name(a->err), a->status, a->http_version, a->body.len, reason.ptr);
}

static int run(struct http_client *c, const char *url, int n, struct str body)
{
    struct why why;
    struct http_request r = { .method = "POST", .url = url, .body = body, .timeout_ms = 10000 };
    for (int i = 0; i < n; i++) {
        enum err err = http_client_start(c, &r, print_answer, NULL, &why);
        if (err) {
            printf("{\"err\": \"%s\", \"not_started\": true}\n", err_name(err));
            return 1;
        }
    }
    while (http_client_poll(c, NULL, 1000) > 0)
        ;
    return 0;
}

int main(int argc, char **argv)
{
    struct http_client *c;
    struct why why;
    if (argc != 6) {
        fprintf(stderr, "usage: http2_driver CA_FILE URL N BODY_BYTES FIRST\n");
        return 2;
    }
    struct http_client_options o = { .user_agent = "http2_driver", .ca_file = argv[1] };
    if (http_client_new(&c, &o, &why)) {
        fprintf(stderr, "%s\n", why.text);
        return 2;
    }
    size_t len = strtoul(argv[4], NULL, 10);
    char *body = malloc(len + 1);
    memset(body, 'x', len + 1);
    struct str sent = { body, len };
    int code = atoi(argv[5]) ? run(c, argv[2], 1, sent) : 0;
    if (!code)
        code = run(c, argv[2], atoi(argv[3]), sent);
    http_client_free(c);
    free(body);
    return code;
}
