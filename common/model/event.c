#include "event.h"

#include <string.h>

#include "ids.h"
#include "json_scan.h"

static const struct {
    const char *name;
    enum event_kind kind;
} kinds[] = {
    { "pull_request", EVENT_PULL_REQUEST },
    { "push", EVENT_PUSH },
    { "check_run", EVENT_CHECK_RUN },
    { "check_suite", EVENT_CHECK_SUITE },
    { "ping", EVENT_PING },
};
#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

enum event_kind event_kind_of(struct str x_github_event)
{
    for (size_t i = 0; i < N_KINDS; i++)
        if (str_is(x_github_event, kinds[i].name))
            return kinds[i].kind;
    return EVENT_OTHER;
}

const char *event_kind_name(enum event_kind kind)
{
    for (size_t i = 0; i < N_KINDS; i++)
        if (kinds[i].kind == kind)
            return kinds[i].name;
    return "other";
}

/* ---- facts of a body ------------------------------------------------------------------------ */

/* FACT_WORDS: text for people, which costs no event: absent where it holds a NUL. */
enum fact_type { FACT_TEXT, FACT_WORDS, FACT_NUMBER, FACT_TRUE, FACT_LABEL };

struct event_fact {
    unsigned kinds; /* bits of enum event_kind that have it */
    const char *path;
    enum fact_type type;
    size_t offset, size; /* in struct event_facts */
    bool needed;
};

#define PR       (1u << EVENT_PULL_REQUEST)
#define PUSH     (1u << EVENT_PUSH)
#define RUN      (1u << EVENT_CHECK_RUN)
#define SUITE    (1u << EVENT_CHECK_SUITE)
#define EACH     (~0u)
#define FIELD(f) offsetof(struct event_facts, f), sizeof(((struct event_facts *)0)->f)

static const struct event_fact facts_table[] = {
    { EACH, "repository.full_name", FACT_TEXT, FIELD(repo), false },
    { EACH, "repository.default_branch", FACT_TEXT, FIELD(default_branch), false },
    { PR | RUN | SUITE, "action", FACT_TEXT, FIELD(action), true },
    { PR, "pull_request.number", FACT_NUMBER, FIELD(pr), true },
    { PR, "pull_request.head.sha", FACT_TEXT, FIELD(head_sha), true },
    { PR, "pull_request.head.ref", FACT_WORDS, FIELD(head_ref), false },
    { PR, "pull_request.head.repo.full_name", FACT_WORDS, FIELD(head_repo), false },
    { PR, "pull_request.state", FACT_WORDS, FIELD(state), false },
    { PR, "pull_request.updated_at", FACT_TEXT, FIELD(updated_at), true },
    { PR, "pull_request.title", FACT_WORDS, FIELD(title), false },
    { PR, "pull_request.user.login", FACT_WORDS, FIELD(author), false },
    { PR, "pull_request.labels[].name", FACT_LABEL, FIELD(labels), false },
    { PR, "label.name", FACT_TEXT, FIELD(label), false },
    { PUSH, "ref", FACT_TEXT, FIELD(ref), true },
    { PUSH, "after", FACT_TEXT, FIELD(head_sha), true },
    { PUSH, "deleted", FACT_TRUE, FIELD(deleted), false },
    { RUN, "check_run.head_sha", FACT_TEXT, FIELD(head_sha), true },
    { RUN, "check_run.id", FACT_NUMBER, FIELD(check_run_id), true },
    { RUN, "check_run.name", FACT_TEXT, FIELD(check_name), false },
    { RUN, "check_run.external_id", FACT_TEXT, FIELD(external_id), false },
    { RUN, "check_run.app.id", FACT_NUMBER, FIELD(app_id), false },
    { RUN, "check_run.check_suite.id", FACT_NUMBER, FIELD(check_suite_id), false },
    { SUITE, "check_suite.head_sha", FACT_TEXT, FIELD(head_sha), true },
    { SUITE, "check_suite.id", FACT_NUMBER, FIELD(check_suite_id), true },
    { SUITE, "check_suite.app.id", FACT_NUMBER, FIELD(app_id), false },
};
#define N_FACTS (sizeof(facts_table) / sizeof(facts_table[0]))

struct facts_parse {
    const struct event_fact *fact[N_FACTS]; /* by want */
    struct event_facts *to;
};

/* A value of another type, or too long, is left out: event_check finds what is missing. */
static bool fact_found(void *opaque, size_t want, enum json_type type, struct str text,
                       size_t index)
{
    struct facts_parse *reading = opaque;
    const struct event_fact *fact = reading->fact[want];
    struct event_facts *to = reading->to;
    (void)index;
    void *field = (char *)to + fact->offset;
    int64_t number;
    if (fact->type == FACT_TRUE)
        *(bool *)field = type == JSON_SCAN_TRUE;
    else if (fact->type == FACT_NUMBER && type == JSON_SCAN_NUMBER && str_to_i64(text, &number))
        *(int64_t *)field = number;
    else if ((fact->type == FACT_TEXT || fact->type == FACT_WORDS) && type == JSON_SCAN_STRING)
        (void)str_copy(field, fact->size, text);
    else if (fact->type == FACT_LABEL && type == JSON_SCAN_STRING &&
             to->n_labels < EVENT_MAX_LABELS)
        to->n_labels += str_copy(to->labels[to->n_labels], sizeof(to->labels[0]), text);
    return true;
}

enum err event_read(enum event_kind kind, struct str body, struct event_facts *ret, struct why *why)
{
    struct json_want wants[N_FACTS];
    struct facts_parse reading;
    size_t n = 0;
    for (size_t i = 0; i < N_FACTS; i++) {
        if ((facts_table[i].kinds & 1u << kind) == 0)
            continue;
        reading.fact[n] = &facts_table[i];
        wants[n++] = (struct json_want){ .path = facts_table[i].path,
                                         .found = fact_found,
                                         .free_text = facts_table[i].type == FACT_WORDS };
    }
    struct event_facts facts;
    memset(&facts, 0, sizeof(facts));
    reading.to = &facts;
    const struct json_rules rules = { .nul_in_others = true, .has_nul = &facts.has_nul };
    enum err err = json_scan(body, &rules, wants, n, &reading, why);
    if (err)
        return err;
    if (kind == EVENT_PUSH)
        (void)ciflow_tag_pr(str_of(facts.ref), &facts.pr);
    *ret = facts;
    return OK;
}

enum err event_check(enum event_kind kind, const struct event_facts *facts, struct why *why)
{
    for (size_t i = 0; i < N_FACTS; i++) {
        const struct event_fact *fact = &facts_table[i];
        const void *field = (const char *)facts + fact->offset;
        bool present =
            fact->type == FACT_NUMBER ? *(const int64_t *)field > 0 : *(const char *)field != '\0';
        if ((fact->kinds & 1u << kind) != 0 && fact->needed && !present)
            return why_set(why, ERR_REFUSE, "%s is missing, of the wrong type or too long",
                           fact->path);
    }
    if (facts->head_sha[0] != '\0' && !sha_valid(str_of(facts->head_sha)))
        return why_set(why, ERR_REFUSE, "the head commit is not 7 to %d hex digits", SHA_MAX);
    if (facts->repo[0] != '\0' && !repo_valid(str_of(facts->repo)))
        return why_set(why, ERR_REFUSE, "repository.full_name is not owner/repo");
    return OK;
}

enum err event_scan(enum event_kind kind, struct str body, struct event_facts *ret, struct why *why)
{
    struct event_facts facts;
    enum err err = event_read(kind, body, &facts, why);
    if (!err)
        err = event_check(kind, &facts, why);
    if (!err)
        *ret = facts;
    return err;
}

/* ---- files of a push ------------------------------------------------------------------------ */

struct search {
    struct str path;
    bool found;
};

static bool search_found(void *opaque, size_t want, enum json_type type, struct str text,
                         size_t index)
{
    struct search *search = opaque;
    (void)want;
    (void)index;
    search->found = type == JSON_SCAN_STRING && str_eq(text, search->path);
    return !search->found;
}

bool event_push_touches(struct str body, const char *path)
{
    static const struct json_want wants[] = {
        { "commits[].added[]", search_found, true },
        { "commits[].modified[]", search_found, true },
        { "commits[].removed[]", search_found, true },
        { "head_commit.added[]", search_found, true },
        { "head_commit.modified[]", search_found, true },
        { "head_commit.removed[]", search_found, true },
    };
    struct search search = { .path = str_of(path) };
    const struct json_rules rules = { .nul_in_others = true };
    enum err err = json_scan(body, &rules, wants, sizeof(wants) / sizeof(wants[0]), &search, NULL);
    return !err && search.found;
}

/* ---- key and headers ------------------------------------------------------------------------ */

void event_key(struct buf *to, enum event_kind kind, const struct event_facts *facts)
{
    buf_puts(to, facts->repo);
    buf_putc(to, facts->pr > 0 ? '#' : '@');
    if (facts->pr > 0)
        buf_put_number(to, facts->pr);
    else
        buf_puts(to, kind == EVENT_PUSH ? facts->ref : facts->head_sha);
}

enum err event_from_headers(struct event *ret, const struct headers *headers, struct why *why)
{
    struct event e = {
        .kind = event_kind_of(headers_get(headers, "event")),
        .action = headers_get(headers, "action"),
        .delivery = headers_get(headers, "delivery"),
        .head_sha = headers_get(headers, "head_sha"),
        .source = headers_get(headers, "source"),
        .pr = headers_get_i64(headers, "pr", 0),
        .received_ms = headers_get_i64(headers, "received_ms", 0),
        .again = headers_get(headers, "again"),
    };
    if (e.kind == EVENT_OTHER)
        return why_set(why, ERR_REFUSE, "header event is missing or unknown");
    if (!delivery_valid(e.delivery))
        return why_set(why, ERR_REFUSE, "header delivery is missing or malformed");
    if (!e.action.ptr && e.kind != EVENT_PUSH && e.kind != EVENT_PING)
        return why_set(why, ERR_REFUSE, "header action is missing");
    if (e.kind != EVENT_PING && !sha_valid(e.head_sha))
        return why_set(why, ERR_REFUSE, "header head_sha is missing or malformed");
    if (e.pr < 0 || (e.pr == 0 && e.kind == EVENT_PULL_REQUEST))
        return why_set(why, ERR_REFUSE, "header pr is missing or malformed");
    if (e.received_ms <= 0)
        return why_set(why, ERR_REFUSE, "header received_ms is missing or malformed");
    if (!e.source.ptr)
        return why_set(why, ERR_REFUSE, "header source is missing");
    if (e.again.ptr && !delivery_valid(e.again))
        return why_set(why, ERR_REFUSE, "header again is malformed");
    *ret = e;
    return OK;
}

void event_to_headers(const struct event *event, struct headers *to)
{
    headers_put(to, "event", str_of(event_kind_name(event->kind)));
    headers_put(to, "action", event->action);
    headers_put(to, "delivery", event->delivery);
    if (event->pr > 0)
        headers_put_i64(to, "pr", event->pr);
    headers_put(to, "head_sha", event->head_sha);
    headers_put_i64(to, "received_ms", event->received_ms);
    headers_put(to, "source", event->source);
    headers_put(to, "again", event->again);
}
