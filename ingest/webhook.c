#include "webhook.h"

#include <stdlib.h>

#include "../common/model/ids.h"
#include "form.h"

#define KEY_MAX (REPO_MAX + 1 + 512)

bool webhook_head_judge(const struct webhook_rules *rules, const struct webhook_head *head,
                        struct verdict *v)
{
    struct str hex;
    if (head->signature.ptr == NULL)
        return verdict_refuse(v, 400, "signature_missing", "X-Hub-Signature-256 is missing");
    if (!signature_form(head->signature, &hex))
        return verdict_refuse(v, 401, "signature_malformed",
                              "X-Hub-Signature-256 is not sha256= and 64 hex digits");
    if (str_is(head->target_type, "integration") && head->target_id.ptr != NULL &&
        rules->app_id.ptr != NULL && !str_eq(head->target_id, rules->app_id))
        return verdict_refuse(v, 401, "other_app", "this webhook is for another GitHub App");
    if (head->event.ptr == NULL)
        return verdict_refuse(v, 400, "event_missing", "X-GitHub-Event is missing");
    return true;
}

/* ---- which events are passed on (step 4) ---------------------------------------------------- */

static bool pull_request_counts(const struct event_facts *facts)
{
    static const char *const actions[] = { "opened", "reopened", "synchronize", "closed" };
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
        if (str_is(str_of(facts->action), actions[i]))
            return true;
    struct str action = str_of(facts->action), device;
    return (str_is(action, "labeled") || str_is(action, "unlabeled")) &&
           ciflow_label_device(str_of(facts->label), &device);
}

/* Without recursion: each star of the pattern is stretched only while no later one has been met. */
static bool ref_matches(struct str pattern, struct str ref)
{
    size_t p = 0, r = 0, star = pattern.len, from = 0; /* star: where the last one stands */
    while (r < ref.len) {
        if (p < pattern.len && pattern.ptr[p] == '*') {
            star = p++;
            from = r;
        } else if (p < pattern.len && pattern.ptr[p] == ref.ptr[r]) {
            p++;
            r++;
        } else if (star < pattern.len) {
            p = star + 1;
            r = ++from;
        } else {
            return false;
        }
    }
    while (p < pattern.len && pattern.ptr[p] == '*')
        p++;
    return p == pattern.len;
}

static bool push_counts(struct str push_refs, const struct event_facts *facts)
{
    if (facts->deleted)
        return false;
    struct str pattern;
    bool matches = push_refs.ptr == NULL;
    while (!matches && str_split(&push_refs, ',', &pattern))
        matches = ref_matches(str_trim(pattern), str_of(facts->ref));
    return matches;
}

static bool event_counts(const struct webhook_rules *rules, enum event_kind kind,
                         const struct event_facts *facts)
{
    switch (kind) {
    case EVENT_PULL_REQUEST:
        return pull_request_counts(facts);
    case EVENT_PUSH:
        return push_counts(rules->push_refs, facts);
    case EVENT_CHECK_RUN:
    case EVENT_CHECK_SUITE:
        return str_is(str_of(facts->action), "rerequested");
    case EVENT_PING:
    case EVENT_OTHER:
        break;
    }
    return false;
}

/* ---- the steps ------------------------------------------------------------------------------ */

static bool body_decode(const struct webhook_head *head, struct str *body,
                        struct webhook_record *ret, struct verdict *v)
{
    if (!form_is(head->content_type))
        return true;
    struct why why;
    enum err err = form_payload(*body, &ret->decoded, &ret->decoded_len, &why);
    if (err == ERR_RETRY)
        return verdict_later(v, 503, "no_memory", 2, "%s", why.text);
    if (err != OK)
        return verdict_refuse(v, 400, "body_malformed", "%s", why.text);
    *body = (struct str){ ret->decoded, ret->decoded_len };
    return true;
}

/* Steps 3 and 4: what the body says. */
static bool body_judge(const struct webhook_rules *rules, enum event_kind kind, struct str body,
                       struct event_facts *facts, struct verdict *v)
{
    struct why why;
    if (event_read(kind, body, facts, &why) != OK)
        return verdict_refuse(v, 400, "body_malformed", "%s", why.text);
    if (!str_eq_nocase(str_of(facts->repo), rules->upstream_repo))
        return verdict_ignore(v, "other_repository", WEBHOOK_IGNORED);
    if (!event_counts(rules, kind, facts))
        return verdict_ignore(v, "other_action", WEBHOOK_IGNORED);
    if (event_check(kind, facts, &why) != OK)
        return verdict_refuse(v, 400, "body_malformed", "%s", why.text);
    return true;
}

static void record_fill(const struct webhook_head *head, enum event_kind kind, int64_t received_ms,
                        struct webhook_record *ret)
{
    const struct event_facts *facts = &ret->facts;
    ret->event = (struct event){
        .kind = kind,
        .action = facts->action[0] != '\0' ? str_of(facts->action) : STR_NONE,
        .delivery = head->delivery,
        .head_sha = str_of(facts->head_sha),
        .source = STR_LIT("webhook"),
        .pr = facts->pr,
        .received_ms = received_ms,
    };
    buf_init(&ret->key, KEY_MAX);
    event_key(&ret->key, kind, facts);
}

static bool steps(const struct webhook_rules *rules, const struct webhook_head *head,
                  struct str body, int64_t received_ms, struct webhook_record *ret,
                  struct verdict *v)
{
    struct str hex;
    if (!webhook_head_judge(rules, head, v))
        return false;
    if (!signature_form(head->signature, &hex) || !signature_matches(&rules->secrets, body, hex))
        return verdict_refuse(v, 401, "signature_bad", "the signature does not match the body");
    enum event_kind kind = event_kind_of(head->event);
    if (kind == EVENT_OTHER)
        return verdict_ignore(v, "other_event", WEBHOOK_IGNORED);
    if (!delivery_valid(head->delivery))
        return verdict_refuse(v, 400, "delivery_malformed",
                              "X-GitHub-Delivery is missing or not [A-Za-z0-9-]{1,%d}",
                              DELIVERY_MAX);
    if (!body_decode(head, &body, ret, v) || !body_judge(rules, kind, body, &ret->facts, v))
        return false;
    record_fill(head, kind, received_ms, ret);
    return true;
}

bool webhook_judge(const struct webhook_rules *rules, const struct webhook_head *head,
                   struct str body, int64_t received_ms, struct webhook_record *ret,
                   struct verdict *v)
{
    ret->decoded = NULL;
    buf_init(&ret->key, 0);
    if (steps(rules, head, body, received_ms, ret, v))
        return true;
    webhook_record_clear(ret);
    return false;
}

void webhook_record_clear(struct webhook_record *r)
{
    buf_clear(&r->key);
    free(r->decoded);
    r->decoded = NULL;
}
