/* `crcrctl score`: the scorecard of a compute platform. */

#include "../../common/base/clock.h"
#include "out.h"
#include "scan.h"
#include "scorecard.h"
#include "verbs.h"

#define TEXT_MAX (1u << 20)

/* ---- text and JSON -------------------------------------------------------------------------- */

static void put_item(struct buf *to, const struct score_rule *rule, const struct score_item *item)
{
    buf_printf(to, "  %2d of %2d  %s  %-28s  ", item->score, rule->max, rule->p0 ? "P0" : "  ",
               rule->name);
    if (item->measured)
        buf_puts(to, "measured  ");
    if (!item->claimed && !item->measured)
        buf_puts(to, "nothing claimed  ");
    if (item->score)
        clean_printf(to, "%s  %s  ", item->date, item->evidence);
    clean_printf(to, "%s", item->note);
    while (to->len && to->ptr[to->len - 1] == ' ')
        to->len--;
    buf_putc(to, '\n');
}

static void put_text(const struct scorecard *card, struct buf *to)
{
    struct score_sum sum;
    scorecard_sum(card, &sum);
    clean_printf(to, "%s, release %s%s%s\n", card->platform, card->release,
                 *card->repo ? ", measured at " : "", card->repo);
    for (int i = 0; i < SCORE_ITEMS; i++)
        put_item(to, &score_rules[i], &card->at[i]);
    buf_printf(to, "%d of %d points, %d P0 items are not met: %s", sum.total, SCORE_TOTAL,
               sum.p0_missing, grade_name(sum.grade));
    buf_printf(to, " (Stable: all P0 and %d, Unstable: %d)\n", SCORE_STABLE, SCORE_UNSTABLE);
    if (card->previous == GRADE_UNKNOWN)
        buf_puts(to, "Grade of the release before is not known (previous: …): the documentation "
                     "stays ");
    else
        buf_printf(to, "With %s at the release before, the documentation %s ",
                   grade_name(card->previous),
                   sum.next == card->documented  ? "stays"
                   : sum.next > card->documented ? "may rise to"
                                                 : "falls to");
    buf_printf(to, "%s.\n", grade_name(sum.next));
}

static void card_put_json(const struct scorecard *card, struct buf *to)
{
    struct score_sum sum;
    scorecard_sum(card, &sum);
    put_json(to,
             "{platform:%s release:%s repo:%s total:%d of:%d p0_missing:%d grade:%s documented:%s "
             "previous:%s next:%s items:[",
             card->platform, card->release, card->repo, sum.total, SCORE_TOTAL, sum.p0_missing,
             grade_name(sum.grade), grade_name(card->documented),
             card->previous ? grade_name(card->previous) : NULL, grade_name(sum.next));
    for (int i = 0; i < SCORE_ITEMS; i++) {
        const struct score_item *item = &card->at[i];
        put_json(to, "{name:%s score:%d max:%d p0:%i measured:%i evidence:%s date:%s note:%s}",
                 score_rules[i].name, item->score, score_rules[i].max, score_rules[i].p0,
                 item->measured, item->evidence, item->date, item->note);
    }
    buf_puts(to, "]}\n");
}

/* ---- the verb ------------------------------------------------------------------------------- */

static bool result_found(void *opaque, const struct record *record)
{
    struct result_record row;
    struct why why;
    if (!record->value.ptr || result_record_from_json(record->value, &row, &why))
        return true;
    score_measure_put(opaque, &row, record->timestamp_ms);
    result_record_clear(&row);
    return true;
}

int verb_score(struct ctl *ctl, const struct args *args)
{
    struct buf CLEANUP(buf_clear) file = BUF_INIT(SCORE_FILE_MAX);
    struct buf CLEANUP(buf_clear) text = BUF_INIT(TEXT_MAX);
    char today[CLOCK_TEXT_SIZE];
    struct scorecard card;
    struct why why;
    int code;
    clock_format(clock_wall_ms(), today);
    if (args->items == (args->n_names > 0))
        return ctl_bad(ctl, "arguments", args->items ? "FILE and --items" : "",
                       "one of FILE and --items");
    for (int i = 0; args->items && i < SCORE_ITEMS; i++) {
        if (args->json)
            put_json(NULL, "{name:%s max:%d p0:%i}", score_rules[i].name, score_rules[i].max,
                     score_rules[i].p0);
        else
            printf("%-28s  0 to %2d%s\n", score_rules[i].name, score_rules[i].max,
                   score_rules[i].p0 ? "  P0" : "");
    }
    if (args->items)
        return CTL_OK;
    enum err err = ctl_read_file(&file, args->names[0], &why);
    if (!err)
        err =
            scorecard_parse(&card, args->names[0], buf_str(&file), (struct str){ today, 10 }, &why);
    if (err) {
        fprintf(stderr, "%s\n", why.text); /* file:line:column first, as compilers do */
        return CTL_PROBLEM;
    }
    if (*card.repo && (code = ctl_needs_kafka(ctl)) != CTL_OK)
        return code;
    if (*card.repo) {
        struct scan scan = { .topics = SCAN(TOPIC_RESULTS), .from_ms = args->since_ms };
        struct score_measure *m = score_measure_new(str_of(card.repo));
        err = scan_all(&scan, ctl, result_found, m, &why);
        if (!err)
            score_measure_fill(m, clock_wall_ms(), &card);
        score_measure_free(m);
    }
    if (err)
        return ctl_fail(ctl, err, &why);
    (args->json ? card_put_json : put_text)(&card, &text);
    (args->json ? ctl_put : ctl_put_text)(&text);
    return CTL_OK;
}
