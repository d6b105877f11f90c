#include "event_rules.h"

#include "demotions.h"
#include "ids.h"

static bool is_label_action(struct str action)
{
    return str_is(action, "labeled") || str_is(action, "unlabeled");
}

bool event_may_count(enum event_kind kind, struct str action)
{
    switch (kind) {
    case EVENT_PULL_REQUEST:
        return str_is(action, "opened") || str_is(action, "reopened") ||
               str_is(action, "synchronize") || str_is(action, "closed") || is_label_action(action);
    case EVENT_PUSH:
        return true;
    case EVENT_CHECK_RUN:
    case EVENT_CHECK_SUITE:
        return str_is(action, "rerequested");
    case EVENT_PING:
    case EVENT_OTHER:
        break;
    }
    return false;
}

/* Without recursion: each star of the pattern is stretched only while no later one has been met. */
static bool ref_matches(struct str pattern, struct str ref)
{
    size_t p = 0, r = 0, star = pattern.len, from = 0; /* star: where the last one is */
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
    bool matches = !push_refs.ptr;
    while (!matches && str_split(&push_refs, ',', &pattern))
        matches = ref_matches(str_trim(pattern), str_of(facts->ref));
    return matches;
}

static bool event_counts(const struct event_rules *rules, enum event_kind kind,
                         const struct event_facts *facts)
{
    struct str action = str_of(facts->action), device;
    if (!event_may_count(kind, action))
        return false;
    if (kind == EVENT_PUSH)
        return push_counts(rules->push_refs, facts);
    if (kind == EVENT_PULL_REQUEST && is_label_action(action))
        return ciflow_label_device(str_of(facts->label), &device) ||
               str_eq_nocase(str_of(facts->label), STR_LIT(DEMOTION_LABEL));
    return true;
}

enum event_verdict event_classify(const struct event_rules *rules, enum event_kind kind,
                                  struct str body, struct event_facts *facts, const char **reason,
                                  struct why *why)
{
    *reason = "body_malformed";
    if (event_read(kind, body, facts, why))
        return EVENT_MALFORMED;
    *reason = "other_repository";
    if (!str_eq_nocase(str_of(facts->repo), rules->upstream_repo))
        return EVENT_IGNORED;
    /* One key, and so one lane, however the webhook spells the upstream. */
    (void)str_copy(facts->repo, sizeof(facts->repo), rules->upstream_repo);
    *reason = "other_action";
    if (!event_counts(rules, kind, facts))
        return EVENT_IGNORED;
    *reason = "body_malformed";
    if (event_check(kind, facts, why))
        return EVENT_MALFORMED;
    *reason = NULL;
    return EVENT_ACCEPTED;
}

struct event event_of_facts(enum event_kind kind, const struct event_facts *facts)
{
    return (struct event){
        .kind = kind,
        .action = facts->action[0] != '\0' ? str_of(facts->action) : STR_NONE,
        .head_sha = str_of(facts->head_sha),
        .pr = facts->pr,
    };
}
