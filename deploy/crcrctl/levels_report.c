/* `crcrctl levels`: who is ready for L3, who is not good enough to stay there, and what follows. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/base/clock.h"
#include "../../common/base/mem.h"
#include "../../common/crypto/hmac.h"
#include "../../common/github/contents.h"
#include "../../common/model/ids.h"
#include "../../common/model/levels.h"
#include "../../common/view/pull_requests.h"
#include "allowlist.h"
#include "audit.h"
#include "out.h"
#include "scan.h"

#define TEXT_MAX     (64u << 20)
#define REASON_MAX   1000
#define DAY_MS       (24 * 3600 * (int64_t)1000)
#define SLACK_MS     DAY_MS
#define DEFAULT_PATH ".github/allowlist.yml"

enum state { READY, NOT_READY, GOOD, BAD, SHOWN, NO_JOBS };
static const struct {
    const char *name, *text; /* in JSON; for people */
} states[] = {
    [READY] = { "ready", "ready for L3" },
    [NOT_READY] = { "not_ready", "not ready" },
    [GOOD] = { "good", "good" },
    [BAD] = { "bad", "not good enough for L3" },
    [SHOWN] = { "shown", "shown; L4 is decided by people" },
    [NO_JOBS] = { "no_jobs", "no jobs in that time" },
};

/* L2: ready for L3 or not. L3: good, or to be demoted. L4: its figures by the same criteria, and
 * nothing follows: its check may be required, and a required check that is never made would block
 * every pull request; who leaves L4 is decided by people. */
struct level_row {
    const struct allowlist_entry *entry;
    int64_t since_ms;                /* at this level; -1 unknown */
    int64_t from_ms;                 /* measured over what ended since */
    const struct demotion *demotion; /* in force, or NULL */
    const struct demotion *by_pr;    /* the same by an open pull request */
    struct level_verdict verdict;
    struct level_figures self; /* of nightly and periodic runs: they decide nothing */
    enum state state;
};

struct levels_report {
    const struct args *args;
    const struct level_rules *rules;
    int64_t now_ms;
    struct allowlist_read past;
    struct demotions *prs; /* what open pull requests demote; NULL: not known */
    struct levels *jobs;
    size_t unreadable; /* rows */
    struct content_source source;
    struct str path;        /* of the allowlist in its repository */
    struct level_row *rows; /* L2, then L3, then L4, each in file order */
    size_t n;
};

/* ---- what follows from the figures ---------------------------------------------------------- */

static void row_fill(struct level_row *row, const struct levels_report *r,
                     const struct allowlist_entry *entry)
{
    const struct level_rules *rules = r->rules;
    struct level_figures figures;
    row->entry = entry;
    row->from_ms = level_measured_from(rules, entry->level, r->now_ms);
    row->since_ms = tenure_since_ms(r->past.tenure, entry->repo);
    row->demotion = entry->level == 3 ? demotions_find(r->past.demotions, entry->repo) : NULL;
    row->by_pr = entry->level == 3 ? demotions_find(r->prs, entry->repo) : NULL;
    levels_figures(r->jobs, entry->repo, RUN_PULL, row->from_ms, r->now_ms, rules->overrun_ms,
                   &figures);
    levels_figures(r->jobs, entry->repo, RUN_SELF, row->from_ms, r->now_ms, rules->overrun_ms,
                   &row->self);
    level_verdict_get(rules, entry->level, &figures,
                      tenure_total_ms(r->past.tenure, entry->repo, 2, r->now_ms), &row->verdict);
    row->state = row->verdict.no_jobs  ? NO_JOBS
                 : entry->level == 4   ? SHOWN
                 : entry->level == 3   ? row->verdict.all_ok ? GOOD : BAD
                 : row->verdict.all_ok ? READY
                                       : NOT_READY;
}

/* Who is to be demoted from now on: L3 that is bad, and L3 that is demoted and has had no job since
 * by which it could have recovered. *ret is the caller's. */
static struct demotions *demotions_of(const struct levels_report *r)
{
    struct demotions *d = demotions_new();
    for (size_t i = 0; i < r->n; i++) {
        const struct level_row *row = &r->rows[i];
        struct buf CLEANUP(buf_clear) reason = BUF_INIT(REASON_MAX);
        if (row->state == BAD) {
            level_reason(&row->verdict, &reason);
            demotions_add(d, row->entry->repo, buf_str(&reason),
                          row->demotion ? row->demotion->since_ms : r->now_ms);
        } else if (row->demotion && row->state == NO_JOBS) {
            demotions_add(d, row->entry->repo, str_of(row->demotion->reason),
                          row->demotion->since_ms);
        }
    }
    return d;
}

/* ---- text ----------------------------------------------------------------------------------- */

static void put_day(struct buf *to, int64_t ms)
{
    char text[CLOCK_TEXT_SIZE];
    clock_format(ms, text);
    buf_printf(to, "%.10s", text);
}

static void put_criterion(struct buf *to, const struct level_criterion *c)
{
    struct buf CLEANUP(buf_clear) value = BUF_INIT(64);
    if (c->known)
        level_value(&value, c->unit, c->value);
    else
        buf_puts(&value, "no data");
    buf_printf(to, "    %-6s %-11s %-14.*s",
               c->shown || !c->known ? ""
               : c->ok               ? "ok"
                                     : "NOT OK",
               c->name, STR_ARG(buf_str(&value)));
    buf_puts(to, c->at_least ? " at least " : " below ");
    level_value(to, c->unit, c->limit);
    if (*c->of)
        buf_printf(to, ", over %zu %s", c->over, c->of);
    buf_putc(to, '\n');
}

static void put_row(struct buf *to, const struct level_row *row)
{
    buf_printf(to, "  %.*s  %s", STR_ARG(row->entry->repo), states[row->state].text);
    if (row->since_ms >= 0) {
        buf_printf(to, ", %s since ", level_name(row->entry->level));
        put_day(to, row->since_ms);
    }
    if (row->demotion) {
        buf_puts(to, ", demoted since ");
        put_day(to, row->demotion->since_ms);
    }
    if (row->by_pr)
        buf_printf(to, ", demoted: %s", row->by_pr->reason);
    buf_putc(to, '\n');
    for (size_t i = 0; i < row->verdict.n; i++)
        put_criterion(to, &row->verdict.at[i]);
    if (row->self.jobs > 0)
        buf_printf(to,
                   "    nightly and periodic runs, which decide nothing: %zu of %zu jobs passed\n",
                   row->self.successful, row->self.jobs);
}

static void put_level(struct buf *to, const struct levels_report *r, int level, const char *title,
                      int64_t window_ms)
{
    size_t n = 0;
    buf_printf(to, "\n%s, jobs of pull requests that ended in the last ", title);
    level_value(to, UNIT_MS, (double)window_ms);
    buf_putc(to, '\n');
    for (size_t i = 0; i < r->n; i++)
        if (r->rows[i].entry->level == level) {
            put_row(to, &r->rows[i]);
            n++;
        }
    if (n == 0)
        buf_puts(to, "  none\n");
}

/* Each line of the allowlist that is to be moved, where to, and why. */
static void put_proposal(struct buf *to, const struct levels_report *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++) {
        const struct level_row *row = &r->rows[i];
        struct str rest = str_of(r->past.text), line = STR_NONE;
        int level = level_proposed(row->entry->level, &row->verdict);
        if (!level)
            continue;
        for (int k = 0; k < row->entry->line && str_split(&rest, '\n', &line);)
            k++;
        if (!n++)
            buf_puts(to, "\nProposal: move these lines of the allowlist\n");
        buf_printf(to, "  %.*s:%d: ", STR_ARG(r->path), row->entry->line);
        clean_line(to, str_trim(line));
        buf_printf(to, "\n    %.*s: L%d to L%d%s: ", STR_ARG(row->entry->repo), row->entry->level,
                   level, level == 3 ? ", below its device" : "");
        if (level == 2)
            level_reason(&row->verdict, to);
        for (size_t k = 0; level == 3 && k < row->verdict.n; k++) {
            const struct level_criterion *c = &row->verdict.at[k];
            buf_printf(to, "%s%s ", k ? "; " : "", c->name);
            level_value(to, c->unit, c->value);
        }
        buf_putc(to, '\n');
    }
    if (!n)
        buf_puts(to, "\nNobody is to be moved.\n");
}

static void put_text(const struct levels_report *r, struct buf *to)
{
    char fetched[CLOCK_TEXT_SIZE];
    clock_format(r->past.fetched_ms, fetched);
    buf_printf(to, "Allowlist %.10s from %s, fetched %s\n", r->past.sha, r->past.source, fetched);
    put_level(to, r, 2, "Ready for L3?", r->rules->ready_window_ms);
    put_level(to, r, 3, "To stay at L3?", r->rules->demote_window_ms);
    put_level(to, r, 4, "L4", r->rules->demote_window_ms);
    put_proposal(to, r);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void report_put_json(const struct levels_report *r, struct buf *to)
{
    put_json(to,
             "{at:%jd allowlist:{sha:%s source:%s path:%.*s fetched_at:%jd} "
             "ready_window_seconds:%" PRId64 " demote_window_seconds:%" PRId64 " repos:[",
             (intmax_t)r->now_ms, r->past.sha, r->past.source, STR_ARG(r->path),
             (intmax_t)r->past.fetched_ms, r->rules->ready_window_ms / 1000,
             r->rules->demote_window_ms / 1000);
    for (size_t i = 0; i < r->n; i++) {
        const struct level_row *row = &r->rows[i];
        const struct allowlist_entry *entry = row->entry;
        int level = level_proposed(entry->level, &row->verdict);
        put_json(to,
                 "{repo:%.*s level:%s level_since:%jd state:%s demoted_since:%jd "
                 "demoted_reason:%s measured_from:%jd line:%d proposed:%s device:%.*s "
                 "nightly_jobs:%zu nightly_successful:%zu criteria:[",
                 STR_ARG(entry->repo), level_name(entry->level), (intmax_t)row->since_ms,
                 states[row->state].name,
                 row->demotion ? (intmax_t)row->demotion->since_ms : (intmax_t)-1,
                 row->demotion ? row->demotion->reason
                 : row->by_pr  ? row->by_pr->reason
                               : NULL,
                 (intmax_t)row->from_ms, entry->line, level ? level_name(level) : NULL,
                 STR_ARG(entry->device), row->self.jobs, row->self.successful);
        for (size_t k = 0; k < row->verdict.n; k++)
            level_criterion_to_json(&row->verdict.at[k], to);
        buf_puts(to, "]}");
    }
    buf_puts(to, "]}\n");
}

/* ---- --pull-request ------------------------------------------------------------------------- */

/* Title, an empty line, body: what demotes the repository while it is open. */
static enum err put_pull_request(const struct levels_report *r, const char *repo, struct buf *to,
                                 struct why *why)
{
    const struct level_row *row = NULL;
    for (size_t i = 0; i < r->n && !row; i++)
        if (r->rows[i].entry->level == 3 && str_eq_nocase(r->rows[i].entry->repo, str_of(repo)))
            row = &r->rows[i];
    if (!row)
        return why_set(why, ERR_REFUSE, "%s is not at L3 in the allowlist in force", repo);
    if (row->state != BAD)
        return why_set(why, ERR_REFUSE, "%s is not to be demoted: %s", repo,
                       states[row->state].text);
    struct str name = row->entry->repo;
    buf_printf(to, "Move %.*s from L3 to L2\n\n", STR_ARG(name));
    buf_printf(to, "In the %lld days up to ", (long long)(r->rules->demote_window_ms / DAY_MS));
    put_day(to, r->now_ms);
    buf_printf(to,
               " the pull requests tested by `%.*s` fell below what L3 asks:\n\n"
               "| criterion | measured | L3 asks |\n|---|---|---|\n",
               STR_ARG(name));
    for (size_t i = 0; i < row->verdict.n; i++) {
        const struct level_criterion *c = &row->verdict.at[i];
        if (c->ok)
            continue;
        buf_printf(to, "| %s | ", c->name);
        level_value(to, c->unit, c->value);
        buf_printf(to, ", over %zu %s | %s ", c->over, c->of, c->at_least ? "at least" : "below");
        level_value(to, c->unit, c->limit);
        buf_puts(to, " |\n");
    }
    buf_printf(to, "\nIt is line %d of `%.*s`. ", row->entry->line, STR_ARG(r->path));
    buf_puts(to, "While this is open the back end gets no new check runs; those that were started "
                 "are ended. Close it when the figures are good again.\n");
    for (size_t i = 0; i < row->entry->n_oncalls; i++)
        buf_printf(to, "%s@%.*s", i ? " " : "\ncc ", STR_ARG(row->entry->oncalls[i]));
    buf_puts(to, row->entry->n_oncalls ? "\n" : "");
    return OK;
}

/* ---- --apply -------------------------------------------------------------------------------- */

static enum err demotions_write(const struct ctl *ctl, const struct demotions *wanted,
                                const struct levels_report *r, struct why *why)
{
    struct audit audit = { .writer = NULL };
    int64_t now_ms = r->now_ms;
    struct topic_writer *writer = NULL;
    struct headers headers;
    struct buf CLEANUP(buf_clear) json = BUF_INIT(DEMOTIONS_MAX_BYTES);
    char sha[SHA256_HEX_SIZE];
    demotions_to_json(wanted, now_ms, &json);
    if (buf_full(&json))
        return why_set(why, ERR_REFUSE, "the record of demotions would be too large");
    sha256_hex(buf_str(&json), sha);
    headers_init(&headers);
    headers_put(&headers, "source", STR_LIT("crcrctl levels"));
    headers_put(&headers, "sha", str_of(sha));
    headers_put_i64(&headers, "fetched_ms", now_ms);
    enum err err = ctl_writer(ctl, TOPIC_ALLOWLIST, &writer, why);
    if (!err)
        err = audit_begin(&audit, ctl, r->args, why);
    if (!err)
        err = topic_writer_put_wait(writer, ctl->topics.name[TOPIC_ALLOWLIST],
                                    STR_LIT(DEMOTIONS_KEY), buf_str(&json), &headers, NULL, why);
    audit_end(&audit, ctl, err ? CTL_PROBLEM : CTL_OK, "%zu demoted%s%s", demotions_size(wanted),
              err ? ", not stored: " : "", err ? why->text : "");
    topic_writer_free(writer);
    return err;
}

/* In JSON mode what changes goes to stderr, so that stdout stays JSON. */
static enum err apply(const struct ctl *ctl, const struct levels_report *r, struct why *why)
{
    const struct demotions *was = r->past.demotions;
    struct demotions *is = demotions_of(r);
    FILE *to = r->args->json ? stderr : stdout;
    enum err err = OK;
    fputs(r->args->json ? "" : "\n", to);
    for (size_t i = 0; i < demotions_size(is); i++)
        if (!demotions_find(was, str_of(is->at[i].repo)))
            fprintf(to, "demoted    %s: %s\n", is->at[i].repo, is->at[i].reason);
    for (size_t i = 0; i < demotions_size(was); i++)
        if (!demotions_find(is, str_of(was->at[i].repo)))
            fprintf(to, "recovered  %s\n", was->at[i].repo);
    if (demotions_equal(was, is))
        fprintf(to, "unchanged  %zu demoted\n", demotions_size(is));
    if (r->args->dry_run)
        fputs("dry run: nothing was written\n", to);
    else if (!demotions_equal(was, is))
        err = demotions_write(ctl, is, r, why);
    demotions_free(is);
    return err;
}

/* ---- the verb ------------------------------------------------------------------------------- */

static bool result_found(void *opaque, const struct record *record)
{
    struct levels_report *r = opaque;
    struct result_record row;
    struct why why;
    if (!record->value.ptr)
        return true;
    if (result_record_from_json(record->value, &row, &why)) {
        r->unreadable++;
        return true;
    }
    levels_put(r->jobs, &row, record->timestamp_ms);
    result_record_clear(&row);
    return true;
}

/* What demotes besides the topic is only in the view. */
static void ask_view(const struct ctl *ctl, struct levels_report *r)
{
    struct redis *redis = NULL;
    struct why why;
    if (ctl_redis(ctl, &redis, &why) || prs_demoting_get(redis, &r->prs, &why))
        ctl_say(ctl, "pull requests that demote are not known: %s", why.text);
    redis_free(redis);
}

/* Results from a day before the longer window: a row is written when its job ends, or later. */
static enum err fill(const struct ctl *ctl, struct levels_report *r, struct why *why)
{
    const struct level_rules *rules = r->rules;
    int64_t window_ms = rules->ready_window_ms > rules->demote_window_ms ? rules->ready_window_ms
                                                                         : rules->demote_window_ms;
    struct scan scan = { .topics = SCAN(TOPIC_RESULTS),
                         .from_ms = r->now_ms - window_ms - SLACK_MS };
    enum err err = allowlist_read(ctl, &r->past, why);
    const struct allowlist *list = r->past.list;
    if (!err && !list)
        return why_set(why, ERR_REFUSE, "no allowlist has been published to %s yet",
                       ctl->topics.name[TOPIC_ALLOWLIST]);
    if (err || (err = scan_all(&scan, ctl, result_found, r, why)))
        return err;
    r->path = str_of(DEFAULT_PATH);
    if (!content_source_parse(&r->source, str_of(r->past.source), why) &&
        r->source.kind == CONTENT_GITHUB)
        r->path = str_of(r->source.path);
    ask_view(ctl, r);
    r->rows = mem_alloc(allowlist_size(list) + 1, sizeof(*r->rows));
    for (int level = 2; level <= 4; level++)
        for (size_t i = 0; i < allowlist_size(list); i++)
            if (allowlist_at(list, i)->level == level)
                row_fill(&r->rows[r->n++], r, allowlist_at(list, i));
    return OK;
}

int verb_levels(struct ctl *ctl, const struct args *args)
{
    struct levels_report r = { .args = args, .rules = &args->rules, .now_ms = clock_wall_ms() };
    struct buf CLEANUP(buf_clear) text = BUF_INIT(TEXT_MAX);
    struct why why;
    if (args->dry_run && !args->apply)
        return ctl_bad(ctl, "--dry-run", "without --apply", "--apply --dry-run");
    r.jobs = levels_new();
    enum err err = fill(ctl, &r, &why);
    if (!err) {
        if (args->pull_request)
            err = put_pull_request(&r, args->pull_request, &text, &why);
        else
            (args->json ? report_put_json : put_text)(&r, &text);
        const char *body = !err && args->pull_request ? strstr(text.ptr, "\n\n") : NULL;
        if (body && args->json)
            put_json(NULL, "{title:%.*s body:%s}", (int)(body - text.ptr), text.ptr, body + 2);
        else
            (args->json || args->pull_request ? ctl_put : ctl_put_text)(&text);
    }
    if (!err && args->pull_request)
        ctl_say(ctl,
                "to take effect it is on the upstream's own branch " DEMOTION_BRANCH
                "%s, with the label " DEMOTION_LABEL,
                args->pull_request);
    if (!err && args->apply)
        err = apply(ctl, &r, &why);
    if (r.unreadable + r.past.unreadable)
        ctl_say(ctl, "%zu records could not be read and were skipped",
                r.unreadable + r.past.unreadable);
    demotions_free(r.prs);
    allowlist_read_clear(&r.past);
    levels_free(r.jobs);
    free(r.rows);
    return !err ? CTL_OK : ctl_fail(ctl, err, &why);
}
