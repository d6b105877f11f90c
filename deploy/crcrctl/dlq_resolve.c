/* Puts entries back, or drops them; each is resolved by a record of its own afterwards. */
#include <inttypes.h>

#include "../../common/base/clock.h"
#include "dlq_verbs.h"
#include "scan.h"

struct resolving {
    struct ctl *ctl;
    const struct args *args;
    struct dlq_filter filter;
    enum dlq_state to;
    struct dlq dlq;
    struct newest rows;              /* of `results`, for what goes back there */
    struct topic_follower *follower; /* of `results`; NULL: nothing goes back there */
    struct topic_writer *writer;     /* NULL in a dry run */
    struct pace pace;
    struct progress progress;
    size_t chosen, done, unfit, resolved_before, absent;
    struct dlq_place in_doubt; /* maybe put back, and the queue does not say so */
    bool has_doubt;
    enum err err; /* what ended it */
    struct why why;
};

static void choose(struct resolving *r)
{
    const struct dlq_filter *f = &r->filter;
    for (size_t i = 0; i < f->n_places; i++) {
        if (dlq_find(&r->dlq, f->places[i]))
            continue;
        r->absent++;
        ctl_say(r->ctl, "%" PRId32 "@%" PRId64 ": no entry is there", f->places[i].partition,
                f->places[i].offset);
    }
    for (size_t i = 0; i < r->dlq.n; i++) {
        struct dlq_entry *entry = r->dlq.entries[i];
        if (!dlq_matches(f, &r->ctl->topics, entry))
            continue;
        entry->chosen = entry->state == DLQ_OPEN;
        r->chosen += entry->chosen;
        r->resolved_before += !entry->chosen;
    }
}

static void say(const struct resolving *r, const struct dlq_entry *entry, const char *target)
{
    progress_end();
    printf("%s%s%s%s  ", r->writer ? "" : "would be ", dlq_state_name(r->to), target ? " to " : "",
           target ? target : "");
    dlq_print(entry, false, &r->ctl->topics);
}

static bool see_row(void *opaque, const struct record *record)
{
    newest_see(opaque, record->key, record->value);
    return true;
}

/* `results` keeps only the newest row of a job, and an older one would take its place. Jobs end
 * meanwhile: with a rate this may go on for hours. One that comes between this look and the write
 * is not seen. */
static enum err check_row(struct resolving *r, enum topic target, const struct record *record)
{
    if (r->follower) /* for others, too: what librdkafka holds is bounded, and must be taken */
        scan_more(r->follower, see_row, &r->rows);
    if (target != TOPIC_RESULTS || newest_is(&r->rows, record->key, record->value))
        return OK;
    return why_set(&r->why, ERR_REFUSE,
                   "a newer row of this job is in results: drop this one; `crcrctl replay --topic "
                   "callbacks` publishes the newest again");
}

/* ERR_REFUSE: this one alone cannot be. */
static enum err resolve_one(struct resolving *r, const struct dlq_entry *entry,
                            const struct record *record)
{
    enum topic target = TOPIC_DLQ;
    struct headers headers;
    enum err err = OK;
    if (r->to == DLQ_REPLAYED)
        err = dlq_unpark(&r->ctl->topics, record, &target, &headers, &r->why);
    if (!err)
        err = check_row(r, target, record);
    if (!err && r->writer && r->to == DLQ_REPLAYED) {
        err = topic_writer_put_wait(r->writer, r->ctl->topics.name[target], record->key,
                                    record->value, &headers, NULL, &r->why);
        r->has_doubt = !err || err == ERR_UNKNOWN;
        r->in_doubt = entry->at;
    }
    if (!err && r->writer) {
        dlq_resolution_headers(record, r->to, clock_wall_ms(), &headers);
        err = topic_writer_put_wait(r->writer, r->ctl->topics.name[TOPIC_DLQ], record->key,
                                    STR_LIT(""), &headers, NULL, &r->why);
    }
    if (err == ERR_REFUSE && r->has_doubt) /* back in its topic, and nothing says so */
        return why_prefix(&r->why, ERR_STOP, "put back, but not noted");
    if (err)
        return err;
    r->has_doubt = false;
    say(r, entry, r->to == DLQ_REPLAYED ? topic_base_name(target) : NULL);
    return OK;
}

static bool on_record(void *opaque, const struct record *record)
{
    struct resolving *r = opaque;
    const struct dlq_place at = { record->at.partition, record->at.offset };
    struct dlq_entry *entry = dlq_find(&r->dlq, at);
    if (!entry || !entry->chosen)
        return true;
    if (!pace_wait(&r->pace))
        return false;
    entry->chosen = false;
    enum err err = resolve_one(r, entry, record);
    if (err == ERR_REFUSE) {
        r->unfit++;
        ctl_say(r->ctl, "%" PRId32 "@%" PRId64 ": %s", at.partition, at.offset, r->why.text);
    } else if (err) {
        r->err = err;
    } else {
        r->done++;
    }
    progress_show(&r->progress, "%s … %zu of %zu", dlq_state_name(r->to), r->done, r->chosen);
    return !r->err && r->done + r->unfit < r->chosen;
}

/* Reads `results`, when something chosen came from there. */
static enum err read_rows(struct resolving *r)
{
    struct scan results = { .topics = SCAN(TOPIC_RESULTS) };
    const char *topic = r->ctl->topics.name[TOPIC_RESULTS];
    bool any = false;
    for (size_t i = 0; i < r->dlq.n; i++)
        any = any ||
              (r->dlq.entries[i]->chosen && str_is(str_of(r->dlq.entries[i]->source_topic), topic));
    return any && r->to == DLQ_REPLAYED
               ? scan_begin(&results, r->ctl, see_row, &r->rows, &r->follower, &r->why)
               : OK;
}

/* ---- all that were chosen ------------------------------------------------------------------- */

/* The records themselves are read again: a queue may hold more than fits into memory. */
static void run(struct resolving *r)
{
    struct scan scan = { .topics = SCAN(TOPIC_DLQ), .quiet = true };
    r->err = read_rows(r);
    if (!r->err)
        r->err = r->args->dry_run ? OK : ctl_writer(r->ctl, TOPIC_DLQ, &r->writer, &r->why);
    if (r->err || ctl_stopped())
        return;
    pace_init(&r->pace, r->args->rate);
    progress_init(&r->progress, r->ctl->verb);
    enum err err = scan_run(&scan, r->ctl, on_record, r, &r->why);
    progress_end();
    if (!r->err)
        r->err = err;
}

static int report(const struct resolving *r)
{
    size_t left = r->chosen - r->done - r->unfit;
    bool nothing = !r->chosen && !r->resolved_before;
    int code = CTL_OK;
    printf("%zu %s%s, %zu resolved before, %zu cannot be%s\n", r->done,
           r->args->dry_run ? "would be " : "", dlq_state_name(r->to), r->resolved_before, r->unfit,
           r->args->dry_run ? " (dry run: nothing was written)" : "");
    if (r->err)
        code = ctl_fail(r->ctl, r->err, &r->why);
    if (r->has_doubt)
        ctl_say(r->ctl,
                "%" PRId32 "@%" PRId64 " may be put back already, and the queue may not say so: "
                "the next run would put it back again",
                r->in_doubt.partition, r->in_doubt.offset);
    if (left)
        ctl_say(r->ctl, "%zu are left; run it again to go on", left);
    if (nothing)
        ctl_say(r->ctl, "nothing like that is there; `crcrctl dlq list` shows what is");
    if (code == CTL_OK && (left || r->unfit || r->absent || nothing))
        code = CTL_PROBLEM;
    return code;
}

static int resolve(struct ctl *ctl, const struct args *args, enum dlq_state to)
{
    struct resolving r = { .ctl = ctl, .args = args, .to = to };
    int code = dlq_filter_of(ctl, args, &r.filter);
    if (code != CTL_OK)
        return code;
    if (!args->n_names && !args->class && !args->repo && !args->delivery && !args->source &&
        !args->since_ms)
        return ctl_bad(ctl, "arguments", "", "positions, or a filter (--since 30d: all)");
    newest_init(&r.rows);
    code = dlq_read(ctl, &r.dlq, &r.rows);
    if (code != CTL_OK) {
        newest_clear(&r.rows);
        return code;
    }
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ); /* also of one that is killed it is seen what it did */
    choose(&r);
    if (r.chosen)
        run(&r);
    code = report(&r);
    topic_writer_free(r.writer);
    topic_follower_free(r.follower);
    newest_clear(&r.rows);
    dlq_clear(&r.dlq);
    return code;
}

int verb_dlq_replay(struct ctl *ctl, const struct args *args)
{
    return resolve(ctl, args, DLQ_REPLAYED);
}

int verb_dlq_drop(struct ctl *ctl, const struct args *args)
{
    return resolve(ctl, args, DLQ_DROPPED);
}
