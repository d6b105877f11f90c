#include "dispatch.h"

#include <stdio.h>
#include <stdlib.h>

#include "../base/json_put.h"
#include "../base/mem.h"
#include "../model/json_scan.h"
#include "../model/limits.h"
#include "payload_fit.h"

#define EVENT_TYPE_MAX 100
/* {"event_type":"…","client_payload":…} around the payload; an escape has up to six bytes */
#define BODY_MAX_BYTES (DISPATCH_PAYLOAD_MAX_BYTES + 64 + 6 * EVENT_TYPE_MAX)

/* client_payload; false: GitHub would refuse it as too large. */
static bool put_payload(struct buf *to, const struct dispatch *d, struct str callback_token,
                        bool with_trimmed)
{
    size_t begin = to->len;
    buf_puts(to, "{\"event_type\":");
    json_quote(to, str_of(d->event_type));
    if (d->delivery.ptr)
        json_put_text(to, "delivery_id", d->delivery);
    json_put_name(to, "payload");
    buf_put(to, str_trim(d->payload)); /* behind a line's end json_put would set no comma */
    if (callback_token.ptr)
        json_put_text(to, "callback_token", callback_token);
    if (with_trimmed) {
        json_put_name(to, "payload_trimmed");
        buf_put(to, d->trimmed);
    }
    buf_putc(to, '}');
    return !buf_full(to) && to->len - begin <= DISPATCH_PAYLOAD_MAX_BYTES;
}

enum err dispatch_body(struct buf *to, const struct dispatch *d, struct str callback_token,
                       struct why *why)
{
    if (str_of(d->event_type).len > EVENT_TYPE_MAX)
        return why_set(why, ERR_REFUSE, "event_type is longer than %d characters", EVENT_TYPE_MAX);
    if (!d->payload.len)
        return why_set(why, ERR_REFUSE, "there is no payload to dispatch");
    /* payload_trimmed goes first where there is no room for it. */
    for (int with_trimmed = d->trimmed.len > 0; with_trimmed >= 0; with_trimmed--) {
        buf_reset(to);
        buf_puts(to, "{\"event_type\":");
        json_quote(to, str_of(d->event_type));
        json_put_name(to, "client_payload");
        if (!put_payload(to, d, callback_token, with_trimmed))
            continue;
        buf_putc(to, '}');
        return OK;
    }
    return why_set(why, ERR_REFUSE,
                   "client_payload would be larger than GitHub's %d bytes (payload %zu)",
                   DISPATCH_PAYLOAD_MAX_BYTES, d->payload.len);
}

struct sending {
    struct github *g;
    struct dispatch dispatch;
    struct buf body;
    bool refitted;
    struct buf payload, trimmed; /* refitted */
    github_answered_fn *done;
    void *opaque;
};

static void sending_free(struct sending *s)
{
    buf_clear(&s->body);
    buf_clear(&s->payload);
    buf_clear(&s->trimmed);
    free(s);
}

static enum err make_body(void *opaque, int64_t sent_ms, struct str *ret, struct why *why)
{
    struct sending *s = opaque;
    char *CLEANUP(mem_free_char) token = NULL;
    enum err err =
        s->dispatch.sign ? s->dispatch.sign(s->dispatch.sign_opaque, sent_ms, &token, why) : OK;
    if (!err)
        err = dispatch_body(&s->body, &s->dispatch, str_of(token), why);
    *ret = buf_str(&s->body);
    return err;
}

static github_answered_fn answered;

static enum err send(struct sending *s, struct why *why)
{
    char path[REPO_MAX + 32];
    snprintf(path, sizeof(path), "/repos/%.*s/dispatches", STR_ARG(s->dispatch.repo));
    struct github_request request = {
        .auth = GITHUB_AS_INSTALLATION,
        .permission = GITHUB_CONTENTS_WRITE,
        .method = "POST",
        .repo = s->dispatch.repo,
        .path = path,
        .make_body = make_body,
        .make_opaque = s,
        .send_by_ms = s->dispatch.send_by_ms,
        .inside = s->dispatch.inside && !s->refitted,
        .paid = s->dispatch.paid && !s->refitted,
    };
    return github_start(s->g, &request, answered, s, why);
}

/* Both are JSON arrays; either may be absent. */
static void join_arrays(struct buf *to, struct str first, struct str second)
{
    if (first.len <= 2 || second.len <= 2) {
        buf_put(to, first.len > 2 ? first : second);
        return;
    }
    buf_put(to, str_cut(first, first.len - 1));
    buf_putc(to, ',');
    buf_put(to, str_from(second, 1));
}

/* False when nothing more can go. */
static bool refit(struct sending *s)
{
    struct buf CLEANUP(buf_clear) more;
    struct why why;
    struct dispatch *d = &s->dispatch;
    buf_init(&more, DISPATCH_PAYLOAD_MAX_BYTES);
    if (payload_fit(d->payload, d->payload.len / 2, &s->payload, &more, &why))
        return false;
    join_arrays(&s->trimmed, d->trimmed, buf_str(&more));
    d->payload = buf_str(&s->payload);
    d->trimmed = buf_str(&s->trimmed);
    s->refitted = true;
    return true;
}

static void answered(void *opaque, const struct github_answer *answer)
{
    struct sending *s = opaque;
    struct github_answer seen = *answer;
    struct why why;
    /* GitHub: "client_payload is too large." */
    bool too_large = answer->status == 422 && str_find_str(answer->body, STR_LIT("too large")) >= 0;
    if (too_large && !s->refitted && refit(s)) {
        enum err err = send(s, &why);
        if (!err)
            return;
        seen = github_unsent(s->g, err, &why);
    }
    s->done(s->opaque, &seen);
    sending_free(s);
}

enum err dispatch_start(struct github *g, const struct dispatch *d, github_answered_fn *done,
                        void *opaque, struct why *why)
{
    struct sending *s = mem_alloc(1, sizeof(*s));
    s->g = g;
    s->dispatch = *d;
    s->done = done;
    s->opaque = opaque;
    buf_init(&s->body, BODY_MAX_BYTES);
    buf_init(&s->payload, DISPATCH_PAYLOAD_MAX_BYTES);
    buf_init(&s->trimmed, DISPATCH_PAYLOAD_MAX_BYTES);
    enum err err = send(s, why);
    if (err)
        sending_free(s);
    return err;
}
