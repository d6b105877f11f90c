#include "replay.h"

#include <string.h>
#include <unistd.h>

#include "../../common/base/clock.h"
#include "../../common/crypto/hmac.h"
#include "audit.h"
#include "out.h"
#include "scan.h"
#include "summary.h"

#define LINE_MAX (64u << 10)

/* ---- which records, and as what: PURE ------------------------------------------------------- */

bool replay_wants(struct replay_filter *f, const struct record *record)
{
    const struct headers *h = &record->headers;
    struct str delivery = headers_get(h, "delivery");
    if (headers_get(h, "replay").ptr || (f->delivery.len && !str_eq(f->delivery, delivery)))
        return false;
    if ((f->pr && headers_get_i64(h, "pr", 0) != f->pr) || record->timestamp_ms < f->since_ms ||
        record->timestamp_ms >= f->until_ms)
        return false;
    /* What has no valid id is parked by the router, as it was before. */
    if (f->events && delivery.len && delivery.len <= DELIVERY_MAX) {
        if (table_get(&f->seen, delivery))
            return false;
        (void)table_make(&f->seen, delivery);
    }
    return true;
}

void replay_headers(const struct record *record, struct str id, bool events, bool again,
                    struct headers *to)
{
    char position[DLQ_POSITION_SIZE];
    headers_copy(to, &record->headers);
    if (events)
        headers_set(to, "source", STR_LIT("replay"));
    headers_remove(to, "again");
    if (again)
        headers_put(to, "again", id);
    headers_put(to, "replay", id);
    dlq_position_text(dlq_position_of(record), position);
    headers_put_copy(to, "replay_of", str_of(position));
}

/* ---- the verb ------------------------------------------------------------------------------- */

struct replaying {
    const struct ctl *ctl;
    const struct args *args;
    struct replay_filter filter;
    enum topic topic;
    char id[DELIVERY_MAX + 1];
    struct topic_writer *writer; /* NULL in a dry run */
    struct audit audit;
    struct pace pace;
    size_t todo, done;
    enum err err;
    struct why why;
};

static bool on_first_pass(void *opaque, const struct record *record)
{
    struct replaying *r = opaque;
    r->todo += replay_wants(&r->filter, record);
    return true;
}

/* True when the person at the terminal, or --yes, says so. */
static bool is_confirmed(const struct replaying *r)
{
    const struct args *a = r->args;
    char answer[16] = "";
    if (!a->again || a->dry_run || !r->todo)
        return true;
    ctl_say(r->ctl,
            "%zu events will be dispatched to every downstream AGAIN, whatever was sent before and "
            "however old they are.",
            r->todo);
    if (a->yes)
        return true;
    if (!isatty(STDIN_FILENO)) {
        ctl_say(r->ctl, "--yes confirms that");
        return false;
    }
    fputs("Go on? [yes/no] ", stderr);
    return fgets(answer, sizeof(answer), stdin) && str_is(str_trim(str_of(answer)), "yes");
}

/* ---- writing -------------------------------------------------------------------------------- */

static bool on_second_pass(void *opaque, const struct record *record)
{
    struct replaying *r = opaque;
    struct headers headers;
    if (!replay_wants(&r->filter, record))
        return true;
    if (r->writer && !pace_wait(&r->pace))
        return false;
    if (r->writer) {
        replay_headers(record, str_of(r->id), r->topic == TOPIC_EVENTS, r->args->again, &headers);
        r->err = topic_writer_put_wait(r->writer, r->ctl->topics.name[r->topic], record->key,
                                       record->value, &headers, NULL, &r->why);
    } else {
        struct summary CLEANUP(summary_clear) s;
        struct buf CLEANUP(buf_clear) line = BUF_INIT(LINE_MAX);
        summary_of(&s, &r->ctl->topics, record);
        if (r->args->json)
            summary_json(&line, &s);
        else
            summary_line(&line, &s, SUMMARY_DATE | SUMMARY_DELIVERY);
        progress_end();
        printf("%s%.*s\n", r->args->json ? "" : "would replay ", STR_ARG(buf_str(&line)));
    }
    r->done += !r->err;
    progress_show(r->ctl, "replayed … %zu of %zu", r->done, r->todo);
    return !r->err;
}

/* How to run the same replay again: with times instead of "2h ago". */
static void print_resume(const struct replaying *r)
{
    const struct replay_filter *f = &r->filter;
    char since[CLOCK_TEXT_SIZE], until[CLOCK_TEXT_SIZE];
    fprintf(stderr, "crcrctl replay --resume %s --topic %s", r->id, topic_base_name(r->topic));
    if (f->delivery.len)
        fprintf(stderr, " --delivery %.*s", STR_ARG(f->delivery));
    if (f->pr)
        fprintf(stderr, " --pr %lld", (long long)f->pr);
    clock_format(f->since_ms, since);
    clock_format(f->until_ms, until);
    if (f->since_ms)
        fprintf(stderr, " --since %s", since);
    fprintf(stderr, " --until %s", until);
    if (r->args->rate)
        fprintf(stderr, " --rate %lld", (long long)r->args->rate);
    fprintf(stderr, "%s\n", r->args->again ? " --again" : "");
}

/* The records are read again: more may be chosen than fit into memory. */
static void replay_run(struct replaying *r)
{
    struct scan scan = { .topics = SCAN(r->topic), .from_ms = r->filter.since_ms, .quiet = true };
    if (!r->args->dry_run)
        r->err = ctl_writer(r->ctl, r->topic, &r->writer, &r->why);
    if (!r->err && !r->args->dry_run)
        r->err = audit_begin(&r->audit, r->ctl, r->args, &r->why);
    if (r->err)
        return;
    if (r->writer) {
        fputs("should this be ended, run it again with: ", stderr);
        print_resume(r);
    }
    table_clear(&r->filter.seen);
    enum err err = scan_run(&scan, r->ctl, on_second_pass, r, &r->why);
    progress_end();
    if (!r->err)
        r->err = err;
}

static int replay_report(const struct replaying *r)
{
    const struct args *a = r->args;
    size_t left = r->todo > r->done ? r->todo - r->done : 0;
    if (a->json)
        put_json(NULL, "{replayed:%zu left:%zu id:%s dry_run:%i}", r->done, left, r->id,
                 a->dry_run);
    else if (a->dry_run)
        printf("%zu would be replayed; nothing was written\n", r->done);
    else
        printf("%zu replayed as %s%s\n", r->done, a->again ? "again " : "", r->id);
    if (r->err)
        (void)ctl_fail(r->ctl, r->err, &r->why);
    if (left && a->dry_run) {
        ctl_say(r->ctl, "%zu are left", left);
    } else if (left) {
        fprintf(stderr, "crcrctl %s: %zu are left; run it again with: ", r->ctl->verb, left);
        print_resume(r);
    }
    if (!r->todo)
        ctl_say(r->ctl, "nothing like that is in %s", r->ctl->topics.name[r->topic]);
    if (r->err == ERR_RETRY || r->err == ERR_UNKNOWN)
        return CTL_UNREACHABLE;
    return r->err || left || !r->todo ? CTL_PROBLEM : CTL_OK;
}

/* What depends on more than one option. */
static int options_check(const struct ctl *ctl, const struct args *a, const struct replay_filter *f)
{
    if (!a->topic)
        return ctl_bad(ctl, "--topic", "", "events or callbacks");
    if (!a->delivery && !a->pr && !a->since_ms)
        return ctl_bad(ctl, "arguments", "", "--delivery, --pr, or --since (7d: all)");
    if (f->until_ms <= f->since_ms)
        return ctl_bad(ctl, "--until", "before --since", "a later time");
    if (a->again && strcmp(a->topic, "events") != 0)
        return ctl_bad(ctl, "--again", "callbacks", "events: only they are dispatched");
    return CTL_OK;
}

int verb_replay(struct ctl *ctl, const struct args *args)
{
    struct replaying r = { .ctl = ctl, .args = args, .pace.per_second = args->rate };
    r.filter =
        (struct replay_filter){ .delivery = str_of(args->delivery),
                                .pr = args->pr,
                                .since_ms = args->since_ms,
                                .until_ms = args->until_ms ? args->until_ms : clock_wall_ms() + 1 };
    int code = options_check(ctl, args, &r.filter);
    if (code != CTL_OK)
        return code;
    r.topic = args_topic(ctl, args->topic);
    r.filter.events = r.topic == TOPIC_EVENTS;
    if (args->resume)
        (void)str_copy(r.id, sizeof(r.id), str_of(args->resume));
    else
        random_hex(r.id, 4);
    struct scan scan = { .topics = SCAN(r.topic), .from_ms = r.filter.since_ms };
    enum err err = scan_all(&scan, ctl, on_first_pass, &r, &r.why);
    if (!err) {
        code = is_confirmed(&r) ? CTL_OK : CTL_USAGE;
        if (code == CTL_OK && r.todo)
            replay_run(&r);
        if (code == CTL_OK)
            code = replay_report(&r);
    } else {
        code = ctl_fail(ctl, err, &r.why);
    }
    audit_end(&r.audit, ctl, code, "%zu of %zu replayed as %s", r.done, r.todo, r.id);
    topic_writer_free(r.writer);
    table_clear(&r.filter.seen);
    return code;
}
