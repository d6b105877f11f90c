#include <getopt.h>
#include <string.h>

#include "../../common/crypto/hmac.h"
#include "../../common/io/http_client.h"
#include "../../common/model/ids.h"
#include "ctl.h"
#include "file.h"

#define TIMEOUT_MS 15000 /* GitHub waits 10 s */

struct arguments {
    const char *file;
    const char *event;
    const char *url;
    char delivery[DELIVERY_MAX + 1];
};

/* What came back. */
struct answered {
    bool done;
    int status;
    int64_t micros;
    struct buf text; /* the body, or why there is none */
};

static void new_uuid(char to[DELIVERY_MAX + 1])
{
    char hex[33];

    random_hex(hex, 16);
    snprintf(to, DELIVERY_MAX + 1, "%.8s-%.4s-4%.3s-a%.3s-%.12s", hex, hex + 8, hex + 13, hex + 17,
             hex + 20);
}

static int parse(const struct ctl *ctl, struct arguments *ret, int argc, char **argv)
{
    static const struct option options[] = {
        { "event", required_argument, NULL, 'e' },
        { "delivery", required_argument, NULL, 'd' },
        { "url", required_argument, NULL, 'u' },
        { NULL, 0, NULL, 0 },
    };
    int option;

    *ret = (struct arguments){ .event = "pull_request",
                               .url = "http://127.0.0.1:8080/github/webhook" };
    new_uuid(ret->delivery);
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'e')
            ret->event = optarg;
        else if (option == 'u')
            ret->url = optarg;
        else if (option != 'd')
            return ctl_usage(ctl, false);
        else if (!delivery_valid(str_of(optarg)) ||
                 !str_copy(ret->delivery, sizeof(ret->delivery), str_of(optarg)))
            return ctl_bad(ctl, "--delivery", optarg, "1 to 64 letters, digits or hyphens");
    }
    if (optind + 1 != argc)
        return ctl_usage(ctl, false);
    ret->file = argv[optind];
    return CTL_OK;
}

static void on_answer(void *opaque, const struct http_answer *answer)
{
    struct answered *answered = opaque;

    answered->done = true;
    answered->status = answer->err == OK ? answer->status : 0;
    answered->micros = answer->micros;
    if (answer->err == OK)
        buf_put(&answered->text, answer->body);
    else
        buf_puts(&answered->text, answer->reason ? answer->reason : "no answer");
}

static enum err post(const struct arguments *arguments, struct str body, const char *signature,
                     struct answered *answered, struct why *why)
{
    struct http_client *client;
    const struct http_client_options options = { .user_agent = "GitHub-Hookshot/crcrctl",
                                                 .allow_http = true };
    struct headers headers;

    headers_init(&headers);
    headers_put(&headers, "Content-Type", STR_LIT("application/json"));
    headers_put(&headers, "X-GitHub-Event", str_of(arguments->event));
    headers_put(&headers, "X-GitHub-Delivery", str_of(arguments->delivery));
    headers_put(&headers, "X-Hub-Signature-256", str_of(signature));
    const struct http_request request = { .method = "POST",
                                          .url = arguments->url,
                                          .headers = &headers,
                                          .body = body,
                                          .timeout_ms = TIMEOUT_MS };
    enum err err = http_client_new(&client, &options, why);
    if (err != OK)
        return err;
    err = http_client_start(client, &request, on_answer, answered, why);
    while (err == OK && !answered->done)
        http_client_poll(client, NULL, 1000);
    http_client_free(client);
    return err;
}

static int print(const struct ctl *ctl, const struct arguments *arguments,
                 const struct answered *answered)
{
    struct str text = buf_str(&answered->text);

    if (answered->status == 0) {
        fprintf(stderr, "crcrctl %s: no answer from %s: %.*s: is crcr-ingest running there?\n",
                ctl->verb, arguments->url, STR_ARG(text));
        return CTL_UNREACHABLE;
    }
    printf("%d in %.1f ms  delivery %s  %.*s\n", answered->status,
           (double)answered->micros / 1000.0, arguments->delivery, STR_ARG(str_trim(text)));
    return answered->status / 100 == 2 ? CTL_OK : CTL_PROBLEM;
}

int verb_send_webhook(struct ctl *ctl, int argc, char **argv)
{
    struct arguments arguments;
    struct why why;
    char signature[7 + SHA256_HEX_SIZE] = "sha256=";
    struct buf body CLEANUP(buf_clear);
    struct answered answered = { .done = false };
    const char *secrets = config_text(ctl->config, "GITHUB_APP_SECRET");

    buf_init(&body, WEBHOOK_MAX_BYTES + 1); /* one more, to see how a too large one is refused */
    int code = parse(ctl, &arguments, argc, argv);
    if (code != CTL_OK)
        return code;
    if (!secrets || !*secrets)
        return ctl_bad(ctl, "GITHUB_APP_SECRET", "",
                       "the webhook secret of the App (or GITHUB_APP_SECRET_FILE)");
    enum err err = file_read(&body, arguments.file, &why);
    if (err != OK)
        return ctl_fail(ctl, err, &why);

    struct str all = str_of(secrets), first = all;
    (void)str_split(&all, ',', &first);
    hmac_sha256_hex(first, buf_str(&body), signature + 7);
    buf_init(&answered.text, 1u << 20);
    err = post(&arguments, buf_str(&body), signature, &answered, &why);
    code = err == OK ? print(ctl, &arguments, &answered) : ctl_fail(ctl, err, &why);
    buf_clear(&answered.text);
    return code;
}
