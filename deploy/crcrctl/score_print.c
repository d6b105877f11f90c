#include "score_print.h"

#include "../../common/base/json_text.h"
#include "clean.h"

static void put_item(struct buf *to, const struct score_rule *rule, const struct score_item *item)
{
    buf_printf(to, "  %2d of %2d  %s  %-28s  ", item->score, rule->max, rule->p0 ? "P0" : "  ",
               rule->name);
    if (item->measured)
        buf_puts(to, "measured  ");
    if (!item->claimed && !item->measured)
        buf_puts(to, "nothing claimed  ");
    if (item->score) {
        buf_printf(to, "%s  ", item->date);
        clean_line(to, str_of(item->evidence));
        buf_puts(to, "  ");
    }
    clean_line(to, str_of(item->note));
    while (to->len && to->ptr[to->len - 1] == ' ')
        to->len--;
    buf_putc(to, '\n');
}

static void put_next(struct buf *to, const struct scorecard *card, const struct score_sum *sum)
{
    if (card->previous == GRADE_UNKNOWN)
        buf_puts(to, "Grade of the release before is not known (previous: …): the documentation "
                     "stays ");
    else
        buf_printf(to, "With %s at the release before, the documentation %s ",
                   grade_name(card->previous),
                   sum->next == card->documented  ? "stays"
                   : sum->next > card->documented ? "may rise to"
                                                  : "falls to");
    buf_printf(to, "%s.\n", grade_name(sum->next));
}

void score_text(const struct scorecard *card, struct buf *to)
{
    struct score_sum sum;

    scorecard_sum(card, &sum);
    clean_line(to, str_of(card->platform));
    buf_puts(to, ", release ");
    clean_line(to, str_of(card->release));
    buf_puts(to, *card->repo ? ", measured at " : "");
    buf_puts(to, card->repo);
    buf_putc(to, '\n');
    for (int i = 0; i < SCORE_ITEMS; i++)
        put_item(to, &score_rules[i], &card->at[i]);
    buf_printf(to, "%d of %d points, %d P0 items are not met: %s", sum.total, SCORE_TOTAL,
               sum.p0_missing, grade_name(sum.grade));
    buf_printf(to, " (Stable: all P0 and %d, Unstable: %d)\n", SCORE_STABLE, SCORE_UNSTABLE);
    put_next(to, card, &sum);
}

static void json_member(struct buf *to, const char *name, const char *text)
{
    buf_printf(to, ",\"%s\":", name);
    json_text_put(to, *text ? str_of(text) : STR_NONE);
}

void score_json(const struct scorecard *card, struct buf *to)
{
    struct score_sum sum;

    scorecard_sum(card, &sum);
    buf_puts(to, "{\"platform\":");
    json_text_put(to, str_of(card->platform));
    json_member(to, "release", card->release);
    json_member(to, "repo", card->repo);
    buf_printf(to, ",\"total\":%d,\"of\":%d,\"p0_missing\":%d", sum.total, SCORE_TOTAL,
               sum.p0_missing);
    json_member(to, "grade", grade_name(sum.grade));
    json_member(to, "documented", grade_name(card->documented));
    json_member(to, "previous", card->previous ? grade_name(card->previous) : "");
    json_member(to, "next", grade_name(sum.next));
    buf_puts(to, ",\"items\":[");
    for (int i = 0; i < SCORE_ITEMS; i++) {
        const struct score_item *item = &card->at[i];
        buf_puts(to, i ? ",{\"name\":" : "{\"name\":");
        json_text_put(to, str_of(score_rules[i].name));
        buf_printf(to, ",\"score\":%d,\"max\":%d,\"p0\":%s,\"measured\":%s", item->score,
                   score_rules[i].max, score_rules[i].p0 ? "true" : "false",
                   item->measured ? "true" : "false");
        json_member(to, "evidence", item->evidence);
        json_member(to, "date", item->date);
        json_member(to, "note", item->note);
        buf_putc(to, '}');
    }
    buf_puts(to, "]}\n");
}
