#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/base/clock.h"
#include "../../common/model/ids.h"
#include "../../common/model/tenure.h"
#include "probe_ask.h"
#include "scan.h"
#include "summary.h"

#define LOOK_BACK_MS (14 * 24 * 3600 * (int64_t)1000) /* as long as callbacks are kept */

struct arguments {
    bool json;
    struct str repo;
    int64_t since_ms;
};

/* What the topics say; facts borrows from it. */
struct reading {
    const struct ctl *ctl;
    struct probe_facts *facts;
    struct tenure *tenure;
    struct allowlist *list;
    struct demotions *demotions;
    char *source;
};

static int parse(const struct ctl *ctl, struct arguments *ret, int argc, char **argv)
{
    static const struct option options[] = {
        { "json", no_argument, NULL, 'j' },
        { "since", required_argument, NULL, 's' },
        { NULL, 0, NULL, 0 },
    };
    int option, code = CTL_OK;

    *ret = (struct arguments){ .since_ms = clock_wall_ms() - LOOK_BACK_MS };
    while (code == CTL_OK && (option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'j')
            ret->json = true;
        else if (option == 's')
            code = ctl_time(ctl, "--since", optarg, &ret->since_ms);
        else
            code = ctl_usage(ctl, false);
    }
    if (code != CTL_OK)
        return code;
    if (optind + 1 != argc)
        return ctl_usage(ctl, false);
    ret->repo = str_of(argv[optind]);
    if (!repo_valid(ret->repo))
        return ctl_bad(ctl, "repository", argv[optind], "OWNER/REPO");
    return CTL_OK;
}

/* ---- the topics --------------------------------------------------------------------------------
 */

static void list_take(struct reading *r, const struct record *record)
{
    struct allowlist *list;
    struct why why;

    if (allowlist_parse(&list, "allowlist", record->value, &why))
        return; /* what was in force stays */
    allowlist_free(r->list);
    free(r->source);
    r->list = list;
    r->source = str_dup(headers_get(&record->headers, "source"));
    tenure_add(r->tenure, list,
               headers_get_i64(&record->headers, "fetched_ms", record->timestamp_ms));
}

static bool allowlist_found(void *opaque, const struct record *record)
{
    struct reading *r = opaque;
    struct demotions *demotions;
    struct why why;

    if (!record->value.ptr)
        return true;
    if (str_is(record->key, "allowlist"))
        list_take(r, record);
    if (str_is(record->key, DEMOTIONS_KEY) &&
        demotions_from_json(record->value, &demotions, &why) == OK) {
        demotions_free(r->demotions);
        r->demotions = demotions;
    }
    return true;
}

/* Those two say only that a dispatch was not needed. */
static bool is_passed_over(const struct summary *s)
{
    return strcmp(s->outcome, "skipped") == 0 || strcmp(s->outcome, "superseded") == 0;
}

static bool step_found(void *opaque, const struct record *record)
{
    struct reading *r = opaque;
    struct summary s;

    if (!str_eq_nocase(headers_get(&record->headers, "repo"), r->facts->repo))
        return true;
    summary_of(&s, &r->ctl->topics, record);
    struct probe_seen *to = s.topic == TOPIC_CALLBACKS ? &r->facts->callback : &r->facts->dispatch;
    if (s.at_ms < to->at_ms || is_passed_over(&s))
        return true;
    to->at_ms = s.at_ms;
    snprintf(to->delivery, sizeof(to->delivery), "%s", s.delivery);
    snprintf(to->outcome, sizeof(to->outcome), "%s", s.outcome);
    snprintf(to->detail, sizeof(to->detail), "%s", s.detail);
    return true;
}

static enum err read_topics(struct reading *r, struct why *why)
{
    struct scan list = { .quiet = true }, steps = { .quiet = false };

    scan_add(&list, r->ctl, TOPIC_ALLOWLIST);
    scan_add(&steps, r->ctl, TOPIC_DISPATCHES);
    scan_add(&steps, r->ctl, TOPIC_CALLBACKS);
    scan_from(&steps, r->facts->since_ms);
    enum err err = scan_run(&list, r->ctl, allowlist_found, r, why);
    if (err == OK)
        err = scan_run(&steps, r->ctl, step_found, r, why);
    if (err == OK && ctl_stopped()) /* what was not read would be told as missing */
        err = why_set(why, ERR_REFUSE, "interrupted: not all was read");
    const struct allowlist_entry *entry = r->list ? allowlist_find(r->list, r->facts->repo) : NULL;
    r->facts->list = r->list;
    r->facts->source = r->source ? r->source : "";
    r->facts->level_since_ms = tenure_since_ms(r->tenure, r->facts->repo);
    r->facts->demotion =
        entry && entry->level == 3 ? demotions_find(r->demotions, r->facts->repo) : NULL;
    return err;
}

/* ---- the verb ----------------------------------------------------------------------------------
 */

static int show(const struct probe_facts *facts, bool json)
{
    struct probe_line lines[PROBE_LINES];
    struct buf CLEANUP(buf_clear) text;

    buf_init(&text, 64u << 10);
    probe_judge(facts, lines);
    if (json)
        probe_json(facts, lines, &text);
    else
        probe_text(facts, lines, &text);
    fwrite(buf_str(&text).ptr, 1, text.len, stdout);
    if (facts->app == PROBE_NO_ANSWER || facts->workflows == PROBE_NO_ANSWER ||
        facts->check == PROBE_NO_ANSWER)
        return CTL_UNREACHABLE;
    return probe_has_todo(lines) ? CTL_PROBLEM : CTL_OK;
}

int verb_probe(struct ctl *ctl, int argc, char **argv)
{
    struct arguments arguments;
    struct why why;
    int code = parse(ctl, &arguments, argc, argv);

    if (code != CTL_OK)
        return code;
    struct probe_facts facts = { .repo = arguments.repo, .since_ms = arguments.since_ms };
    struct reading reading = { .ctl = ctl, .facts = &facts, .tenure = tenure_new() };
    enum err err = read_topics(&reading, &why);
    if (err == OK) {
        probe_ask_github(ctl, &facts);
        probe_ask_view(ctl, &facts);
        code = show(&facts, arguments.json);
    } else {
        code = ctl_fail(ctl, err, &why);
    }
    tenure_free(reading.tenure);
    allowlist_free(reading.list);
    demotions_free(reading.demotions);
    free(reading.source);
    return code;
}
