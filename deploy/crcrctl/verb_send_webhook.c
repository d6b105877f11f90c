#include <getopt.h>
#include <string.h>

#include "../../common/crypto/hmac.h"
#include "../../common/model/ids.h"
#include "file.h"
#include "post.h"

struct arguments {
    const char *file;
    const char *event;
    const char *url;
    char delivery[DELIVERY_MAX + 1];
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

static enum err post(const struct ctl *ctl, const struct arguments *arguments, struct str body,
                     const char *signature, struct post_answer *answer, struct why *why)
{
    struct headers headers;

    headers_init(&headers);
    headers_put(&headers, "Content-Type", STR_LIT("application/json"));
    headers_put(&headers, "X-GitHub-Event", str_of(arguments->event));
    headers_put(&headers, "X-GitHub-Delivery", str_of(arguments->delivery));
    headers_put(&headers, "X-Hub-Signature-256", str_of(signature));
    return post_wait(ctl, "GitHub-Hookshot/crcrctl", arguments->url, &headers, body, answer, why);
}

int verb_send_webhook(struct ctl *ctl, int argc, char **argv)
{
    struct arguments arguments;
    struct why why;
    char signature[7 + SHA256_HEX_SIZE] = "sha256=";
    struct buf body CLEANUP(buf_clear);
    struct post_answer answer = { .done = false };
    char what[DELIVERY_MAX + 16];
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
    snprintf(what, sizeof(what), "delivery %s", arguments.delivery);
    err = post(ctl, &arguments, buf_str(&body), signature, &answer, &why);
    code = err == OK ? post_print(ctl, arguments.url, what, "crcr-ingest", &answer)
                     : ctl_fail(ctl, err, &why);
    buf_clear(&answer.text);
    return code;
}
