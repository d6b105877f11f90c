#include "send.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "../../common/base/mem.h"
#include "../../common/crypto/hmac.h"
#include "../../common/io/http_client.h"
#include "../../common/model/callback.h"
#include "../../common/model/json_member.h"
#include "out.h"
#include "verbs.h"

#define TIMEOUT_MS 15000 /* GitHub waits 10 s for a webhook */
#define ANSWER_MAX (1u << 20)
#define TOKEN_MAX  (64u << 10)

/* ---- one POST, waited for ------------------------------------------------------------------- */

static void on_answer(void *opaque, const struct http_answer *answer)
{
    struct post_answer *to = opaque;
    to->done = true;
    to->status = !answer->err ? answer->status : 0;
    to->micros = answer->micros;
    if (!answer->err)
        buf_put(&to->text, answer->body);
    else
        buf_puts(&to->text, answer->reason ? answer->reason : "no answer");
}

enum err post(const struct ctl *ctl, const char *user_agent, const char *url,
              const struct headers *headers, struct str body, struct post_answer *ret,
              struct why *why)
{
    struct http_client *client = NULL;
    const struct http_client_options options = { .user_agent = user_agent,
                                                 .ca_file =
                                                     config_text(ctl->config, "CRCR_CA_FILE") };
    const struct http_request request = {
        .method = "POST", .url = url, .headers = headers, .body = body, .timeout_ms = TIMEOUT_MS
    };
    *ret = (struct post_answer){ .text = BUF_INIT(ANSWER_MAX) };
    enum err err = http_url_check(url, true, why);
    if (!err)
        err = http_client_new(&client, &options, why);
    if (!err)
        err = http_client_start(client, &request, on_answer, ret, why);
    while (!err && !ret->done)
        http_client_poll(client, NULL, 1000);
    http_client_free(client);
    return err;
}

/* Prints "202 in 3.2 ms  delivery <id>  <answer>", of a callback without an id. Gives the exit code
 * that fits: 0 for 2xx, 1 for another answer, 3 for none. */
static int post_and_print(const struct ctl *ctl, const char *user_agent, const struct args *args,
                          const struct headers *headers, struct str body, const char *delivery)
{
    const char *url = args->url;
    struct post_answer answer;
    struct buf CLEANUP(buf_clear) clean = BUF_INIT(4 * ANSWER_MAX); /* a control becomes \xNN */
    struct why why;
    int code = CTL_UNREACHABLE;
    enum err err = post(ctl, user_agent, url, headers, body, &answer, &why);
    clean_text(&clean, str_trim(buf_str(&answer.text)));
    if (err) {
        code = ctl_fail(ctl, err, &why);
    } else if (answer.status == 0) {
        ctl_say(ctl, "no answer from %s: %.*s: is crcr-ingest running there?", url,
                STR_ARG(buf_str(&clean)));
    } else {
        code = answer.status / 100 == 2 ? CTL_OK : CTL_PROBLEM;
        if (args->json)
            put_json(NULL, "{status:%d ms:%" PRId64 " delivery:%s answer:%s}", answer.status,
                     answer.micros / 1000, delivery, buf_str(&clean).ptr);
        else
            printf("%d in %.1f ms  %s%s  %.*s\n", answer.status, (double)answer.micros / 1000.0,
                   delivery ? "delivery " : "callback", delivery ? delivery : "",
                   STR_ARG(buf_str(&clean)));
    }
    buf_clear(&answer.text);
    return code;
}

/* ---- send-webhook --------------------------------------------------------------------------- */

static void new_uuid(char to[DELIVERY_MAX + 1])
{
    char hex[33];
    random_hex(hex, 16);
    snprintf(to, DELIVERY_MAX + 1, "%.8s-%.4s-4%.3s-a%.3s-%.12s", hex, hex + 8, hex + 13, hex + 17,
             hex + 20);
}

int verb_send_webhook(struct ctl *ctl, const struct args *args)
{
    char delivery[DELIVERY_MAX + 1], signature[7 + SHA256_HEX_SIZE] = "sha256=";
    /* One more, to see how a too large one is refused. */
    struct buf CLEANUP(buf_clear) body = BUF_INIT(WEBHOOK_MAX_BYTES + 1);
    struct headers headers;
    struct why why;
    struct str secrets = str_of(config_text(ctl->config, "GITHUB_APP_SECRET")), first = secrets;
    if (!secrets.len)
        return ctl_bad(ctl, "GITHUB_APP_SECRET", "",
                       "the webhook secret of the App (or GITHUB_APP_SECRET_FILE)");
    new_uuid(delivery);
    if (args->delivery)
        str_copy(delivery, sizeof(delivery), str_of(args->delivery));
    enum err err = ctl_read_file(&body, args->names[0], &why);
    if (err)
        return ctl_fail(ctl, err, &why);
    (void)str_split(&secrets, ',', &first);
    hmac_sha256_hex(first, buf_str(&body), signature + 7);
    headers_init(&headers);
    headers_put(&headers, "Content-Type", STR_LIT("application/json"));
    headers_put(&headers, "X-GitHub-Event", str_of(args->event));
    headers_put(&headers, "X-GitHub-Delivery", str_of(delivery));
    headers_put(&headers, "X-Hub-Signature-256", str_of(signature));
    return post_and_print(ctl, "GitHub-Hookshot/crcrctl", args, &headers, buf_str(&body), delivery);
}

/* ---- send-callback -------------------------------------------------------------------------- */

/* The file is a client_payload: the workflow is put in. */
static enum err workflow_add(const struct args *a, struct buf *body, struct why *why)
{
    struct why fault = { "" };
    json_t *root = json_document(buf_str(body), &fault);
    const char *conclusion = a->conclusion                        ? a->conclusion
                             : strcmp(a->state, "completed") == 0 ? "success"
                                                                  : NULL;
    char *CLEANUP(mem_free_char) text = NULL;
    if (!json_is_object(root)) {
        json_decref(root);
        return why_set(why, ERR_REFUSE, "%s: not a JSON object: %s", a->names[0], fault.text);
    }
    json_t *workflow = json_pack("{s:s, s:s, s:s, s:s, s:s*, s:s*, s:s*}", "schema_version", "1",
                                 "status", a->state, "name", a->workflow ? a->workflow : "crcrctl",
                                 "run_id", a->run_id ? a->run_id : "1", "job_name", a->job,
                                 "run_attempt", a->run_attempt, "conclusion", conclusion);
    json_object_set_new(root, "workflow", workflow);
    text = json_dumps(root, JSON_COMPACT);
    json_decref(root);
    buf_reset(body);
    buf_puts(body, text);
    return OK;
}

/* What depends on more than one option. */
static int callback_check(const struct ctl *ctl, const struct args *a)
{
    if (!a->token_file)
        return ctl_bad(ctl, "--token-file", "", "a file with the OIDC token, or -");
    if (!strcmp(a->token_file, "-") && !strcmp(a->names[0], "-"))
        return ctl_bad(ctl, "--token-file", "-", "a file: standard input is the callback");
    if (a->conclusion && !conclusion_valid(str_of(a->conclusion)))
        return ctl_bad(ctl, "--conclusion", a->conclusion, "a conclusion of GitHub's");
    if (!a->state && (a->conclusion || a->workflow || a->job || a->run_id || a->run_attempt))
        return ctl_bad(ctl, "--status", "", "in_progress or completed, with what is put in");
    return CTL_OK;
}

int verb_send_callback(struct ctl *ctl, const struct args *args)
{
    struct buf CLEANUP(buf_clear) body = BUF_INIT(CALLBACK_MAX_BYTES + 1); /* as for a webhook */
    struct buf CLEANUP(buf_clear) token = BUF_INIT(TOKEN_MAX), bearer = BUF_INIT(2 * TOKEN_MAX);
    struct headers headers;
    struct why why;
    int code = callback_check(ctl, args);
    if (code != CTL_OK)
        return code;
    enum err err = ctl_read_file(&body, args->names[0], &why);
    if (!err && args->state)
        err = workflow_add(args, &body, &why);
    if (!err)
        err = ctl_read_file(&token, args->token_file, &why);
    if (err)
        return ctl_fail(ctl, err, &why);
    buf_printf(&bearer, "Bearer %.*s", STR_ARG(str_trim(buf_str(&token))));
    headers_init(&headers);
    headers_put(&headers, "Content-Type", STR_LIT("application/json"));
    headers_put(&headers, "Authorization", buf_str(&bearer));
    return post_and_print(ctl, "crcrctl", args, &headers, buf_str(&body), NULL);
}
