#include "dispatch.h"

#include <stdio.h>
#include <stdlib.h>

#include "../base/mem.h"
#include "../model/json_scan.h"
#include "../model/limits.h"

#define EVENT_TYPE_MAX 100
/* {"event_type":"…","client_payload":…} around the payload */
#define BODY_MAX_BYTES (DISPATCH_PAYLOAD_MAX_BYTES + 256)

static void put_member(struct buf *to, const char *name, struct str text)
{
    if (!text.ptr)
        return;
    buf_printf(to, ",\"%s\":", name);
    json_quote(to, text);
}

static void put_payload(struct buf *to, const struct dispatch *d, bool with_trimmed)
{
    buf_puts(to, "{\"event_type\":");
    json_quote(to, str_of(d->event_type));
    put_member(to, "delivery_id", d->delivery);
    buf_puts(to, ",\"payload\":");
    buf_put(to, d->payload);
    put_member(to, "callback_token", d->callback_token);
    if (with_trimmed) {
        buf_puts(to, ",\"payload_trimmed\":");
        buf_put(to, d->trimmed);
    }
    buf_putc(to, '}');
}

enum err dispatch_body(struct buf *to, const struct dispatch *d, struct why *why)
{
    struct buf payload;
    bool with_trimmed = d->trimmed.len > 0;
    if (str_of(d->event_type).len > EVENT_TYPE_MAX)
        return why_set(why, ERR_REFUSE, "event_type is longer than %d characters", EVENT_TYPE_MAX);
    if (!d->payload.len)
        return why_set(why, ERR_REFUSE, "there is no payload to dispatch");
    buf_init(&payload, DISPATCH_PAYLOAD_MAX_BYTES);
    put_payload(&payload, d, with_trimmed);
    if (buf_full(&payload) && with_trimmed) {
        buf_clear(&payload);
        put_payload(&payload, d, false);
    }
    if (buf_full(&payload)) {
        buf_clear(&payload);
        return why_set(why, ERR_REFUSE,
                       "client_payload would be larger than GitHub's %d bytes (payload %zu)",
                       DISPATCH_PAYLOAD_MAX_BYTES, d->payload.len);
    }
    buf_puts(to, "{\"event_type\":");
    json_quote(to, str_of(d->event_type));
    buf_puts(to, ",\"client_payload\":");
    buf_put(to, buf_str(&payload));
    buf_putc(to, '}');
    buf_clear(&payload);
    return OK;
}

struct sending {
    struct buf body;
    github_answered_fn *done;
    void *opaque;
};

static void sending_free(struct sending *s)
{
    buf_clear(&s->body);
    free(s);
}

static void answered(void *opaque, const struct github_answer *answer)
{
    struct sending *s = opaque;
    s->done(s->opaque, answer);
    sending_free(s);
}

enum err dispatch_start(struct github *g, const struct dispatch *d, github_answered_fn *done,
                        void *opaque, struct why *why)
{
    char path[REPO_MAX + 32];
    struct sending *s = mem_alloc(1, sizeof(*s));
    s->done = done;
    s->opaque = opaque;
    buf_init(&s->body, BODY_MAX_BYTES);
    snprintf(path, sizeof(path), "/repos/%.*s/dispatches", STR_ARG(d->repo));
    enum err err = dispatch_body(&s->body, d, why);
    if (!err) {
        struct github_request request = {
            .auth = GITHUB_AS_INSTALLATION,
            .method = "POST",
            .repo = d->repo,
            .path = path,
            .body = buf_str(&s->body),
            .known_ms = d->claimed_ms,
        };
        err = github_start(g, &request, answered, s, why);
    }
    if (err)
        sending_free(s);
    return err;
}
