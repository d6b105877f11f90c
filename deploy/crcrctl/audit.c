#include "audit.h"

#include <pwd.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../common/crypto/hmac.h"
#include "out.h"

/* In a container that is its user and id: --reason names the person there. */
static void who_is_it(char *to, size_t size)
{
    char host[256] = "";
    const struct passwd *user = getpwuid(getuid());
    const char *sudo = getenv("SUDO_USER"), *name = user ? user->pw_name : NULL;
    gethostname(host, sizeof(host) - 1);
    if (sudo && *sudo)
        name = sudo;
    if (name)
        snprintf(to, size, "%s@%s", name, host);
    else
        snprintf(to, size, "%u@%s", (unsigned)getuid(), host);
}

/* All words but --reason, which has a header of its own. */
static void put_arguments(struct buf *to, const struct ctl *ctl)
{
    for (int i = 0; i < ctl->n_words; i++) {
        struct str word = str_of(ctl->words[i]);
        if (str_is(word, "--reason"))
            i++;
        else if (!str_starts(word, "--reason="))
            buf_printf(to, "%s%.*s", to->len ? " " : "", STR_ARG(word));
    }
}

static enum err put(struct audit *a, const struct ctl *ctl, struct headers *h, struct why *why)
{
    char who[512];
    who_is_it(who, sizeof(who));
    headers_put(h, "verb", str_of(ctl->verb));
    headers_put(h, "who", str_of(who));
    return topic_writer_put_wait(a->writer, ctl->topics.name[TOPIC_AUDIT], str_of(a->id),
                                 STR_LIT(""), h, NULL, why);
}

enum err audit_begin(struct audit *a, const struct ctl *ctl, const struct args *args,
                     struct why *why)
{
    struct buf CLEANUP(buf_clear) arguments = BUF_INIT(256u << 10);
    struct headers headers;
    if (a->writer)
        return OK;
    random_hex(a->id, 8);
    put_arguments(&arguments, ctl);
    headers_init(&headers);
    headers_put(&headers, "state", STR_LIT("began"));
    headers_put(&headers, "arguments", buf_str(&arguments));
    if (args->reason)
        headers_put(&headers, "reason", str_of(args->reason));
    enum err err = ctl_writer(ctl, TOPIC_AUDIT, &a->writer, why);
    if (!err)
        err = put(a, ctl, &headers, why);
    if (!err)
        return OK;
    topic_writer_free(a->writer);
    a->writer = NULL;
    return why_prefix(why, err, "nothing was done, for it cannot be noted who does it");
}

void audit_end(struct audit *a, const struct ctl *ctl, int code, const char *format, ...)
{
    struct buf CLEANUP(buf_clear) result = BUF_INIT(64u << 10);
    struct headers headers;
    struct why why;
    va_list args;
    if (!a->writer)
        return;
    va_start(args, format);
    clean_vprintf(&result, format, args);
    va_end(args);
    headers_init(&headers);
    headers_put(&headers, "state", STR_LIT("ended"));
    headers_put_i64(&headers, "exit_code", code);
    headers_put(&headers, "result", buf_str(&result));
    if (put(a, ctl, &headers, &why))
        ctl_say(ctl, "how it ended is not noted in audit: %s", why.text);
    topic_writer_free(a->writer);
    a->writer = NULL;
}
