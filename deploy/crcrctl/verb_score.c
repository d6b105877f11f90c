#include <getopt.h>
#include <string.h>

#include "../../common/base/clock.h"
#include "file.h"
#include "scan.h"
#include "score_measure.h"
#include "score_print.h"

#define TEXT_MAX (1u << 20)
#define DAY_MS   (24 * 3600 * (int64_t)1000)

struct arguments {
    bool json, items;
    int64_t from_ms;
    const char *file;
};

static int parse(const struct ctl *ctl, struct arguments *ret, int argc, char **argv)
{
    static const struct option options[] = {
        { "json", no_argument, NULL, 'j' },
        { "items", no_argument, NULL, 'i' },
        { "since", required_argument, NULL, 's' },
        { NULL, 0, NULL, 0 },
    };
    int option, code = CTL_OK;

    *ret = (struct arguments){ .from_ms = clock_wall_ms() - 90 * DAY_MS };
    while (code == CTL_OK && (option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'j')
            ret->json = true;
        else if (option == 'i')
            ret->items = true;
        else if (option == 's')
            code = ctl_time(ctl, "--since", optarg, &ret->from_ms);
        else
            code = ctl_usage(ctl, false);
    }
    if (code == CTL_OK && optind + (ret->items ? 0 : 1) != argc)
        return ctl_usage(ctl, false);
    ret->file = ret->items ? NULL : argv[optind];
    return code;
}

static bool result_found(void *opaque, const struct record *record)
{
    struct result_record row;
    struct why why;

    if (!record->value.ptr || result_record_from_json(record->value, &row, &why) != OK)
        return true;
    score_measure_put(opaque, &row, record->timestamp_ms);
    result_record_clear(&row);
    return true;
}

/* Nothing is, unless the file names a repository. */
static enum err measure(const struct ctl *ctl, const struct arguments *arguments,
                        struct scorecard *card, struct why *why)
{
    struct scan scan = { .quiet = false };

    if (!*card->repo)
        return OK;
    struct score_measure *m = score_measure_new(str_of(card->repo));
    scan_add(&scan, ctl, TOPIC_RESULTS);
    scan_from(&scan, arguments->from_ms);
    enum err err = scan_run(&scan, ctl, result_found, m, why);
    if (err == OK && ctl_stopped())
        err = why_set(why, ERR_REFUSE, "interrupted: not all was read");
    if (err == OK)
        score_measure_fill(m, clock_wall_ms(), card);
    score_measure_free(m);
    return err;
}

static enum err read_card(const char *file, struct scorecard *ret, struct why *why)
{
    struct buf CLEANUP(buf_clear) text;
    char today[CLOCK_TEXT_SIZE];

    buf_init(&text, SCORE_FILE_MAX);
    clock_format(clock_wall_ms(), today);
    enum err err = file_read(&text, file, why);
    if (err)
        return err;
    return scorecard_parse(ret, file, buf_str(&text), (struct str){ today, 10 }, why);
}

static void print_items(void)
{
    for (int i = 0; i < SCORE_ITEMS; i++)
        printf("%-28s  0 to %2d%s\n", score_rules[i].name, score_rules[i].max,
               score_rules[i].p0 ? "  P0" : "");
}

int verb_score(struct ctl *ctl, int argc, char **argv)
{
    struct arguments arguments;
    struct scorecard card;
    struct why why;
    int code = parse(ctl, &arguments, argc, argv);

    if (code != CTL_OK)
        return code;
    if (arguments.items) {
        print_items();
        return CTL_OK;
    }
    if (read_card(arguments.file, &card, &why) != OK) {
        fprintf(stderr, "%s\n", why.text); /* file:line:column first, as compilers do */
        return CTL_PROBLEM;
    }
    if (*card.repo && (code = ctl_needs_kafka(ctl)) != CTL_OK)
        return code;
    enum err err = measure(ctl, &arguments, &card, &why);
    if (err != OK)
        return ctl_fail(ctl, err, &why);
    struct buf CLEANUP(buf_clear) text;
    buf_init(&text, TEXT_MAX);
    if (arguments.json)
        score_json(&card, &text);
    else
        score_text(&card, &text);
    fwrite(buf_str(&text).ptr, 1, text.len, stdout);
    return CTL_OK;
}
