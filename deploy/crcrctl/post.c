#include "post.h"

#include "../../common/io/http_client.h"
#include "clean.h"

#define TIMEOUT_MS 15000 /* GitHub waits 10 s for a webhook */
#define ANSWER_MAX (1u << 20)

static void on_answer(void *opaque, const struct http_answer *answer)
{
    struct post_answer *to = opaque;

    to->done = true;
    to->status = answer->err == OK ? answer->status : 0;
    to->micros = answer->micros;
    if (answer->err == OK)
        buf_put(&to->text, answer->body);
    else
        buf_puts(&to->text, answer->reason ? answer->reason : "no answer");
}

enum err post_wait(const struct ctl *ctl, const char *user_agent, const char *url,
                   const struct headers *headers, struct str body, struct post_answer *ret,
                   struct why *why)
{
    struct http_client *client;
    const struct http_client_options options = { .user_agent = user_agent,
                                                 .ca_file =
                                                     config_text(ctl->config, "CRCR_CA_FILE"),
                                                 .allow_http = true };
    const struct http_request request = {
        .method = "POST", .url = url, .headers = headers, .body = body, .timeout_ms = TIMEOUT_MS
    };

    *ret = (struct post_answer){ .done = false };
    buf_init(&ret->text, ANSWER_MAX);
    enum err err = http_client_new(&client, &options, why);
    if (err != OK)
        return err;
    err = http_client_start(client, &request, on_answer, ret, why);
    while (err == OK && !ret->done)
        http_client_poll(client, NULL, 1000);
    http_client_free(client);
    return err;
}

int post_print(const struct ctl *ctl, const char *url, const char *what, const char *who,
               const struct post_answer *answer)
{
    struct str text = str_trim(buf_str(&answer->text));
    struct buf CLEANUP(buf_clear) clean;

    buf_init(&clean, 4 * ANSWER_MAX); /* a control becomes \xNN */
    clean_text(&clean, text);
    if (answer->status == 0) {
        fprintf(stderr, "crcrctl %s: no answer from %s: %.*s: is %s running there?\n", ctl->verb,
                url, STR_ARG(buf_str(&clean)), who);
        return CTL_UNREACHABLE;
    }
    printf("%d in %.1f ms  %s  %.*s\n", answer->status, (double)answer->micros / 1000.0, what,
           STR_ARG(buf_str(&clean)));
    return answer->status / 100 == 2 ? CTL_OK : CTL_PROBLEM;
}
