#include "verb_dlq.h"

#include <getopt.h>
#include <string.h>

#include "../../common/model/ids.h"
#include "scan.h"

/* ---- arguments ------------------------------------------------------------------------------ */

static int take_class(const struct ctl *ctl, struct dlq_arguments *to, const char *text)
{
    if (strcmp(text, "poison") && strcmp(text, "refused") && strcmp(text, "exhausted"))
        return ctl_bad(ctl, "--class", text, "poison, refused or exhausted");
    to->filter.class = str_of(text);
    return CTL_OK;
}

static int take_source(const struct ctl *ctl, struct dlq_arguments *to, const char *text)
{
    to->filter.source = str_of(text);
    for (size_t i = 0; i < TOPIC_COUNT; i++)
        if (!strcmp(text, topic_base_name((enum topic)i)) || !strcmp(text, ctl->topics.name[i]))
            return CTL_OK;
    return ctl_bad(ctl, "--source", text, "a topic, such as dispatch.l2, events or callbacks");
}

static int take_option(const struct ctl *ctl, struct dlq_arguments *to, int option)
{
    switch (option) {
    case 'c':
        return take_class(ctl, to, optarg);
    case 'o':
        return take_source(ctl, to, optarg);
    case 'r':
        to->filter.repo = str_of(optarg);
        return repo_valid(to->filter.repo) ? CTL_OK : ctl_bad(ctl, "--repo", optarg, "OWNER/REPO");
    case 'd':
        to->filter.delivery = str_of(optarg);
        return CTL_OK;
    case 's':
        return ctl_time(ctl, "--since", optarg, &to->filter.since_ms);
    case 'R':
        return ctl_rate(ctl, optarg, &to->rate);
    case 'a':
        to->all = true;
        return CTL_OK;
    case 'j':
        to->json = true;
        return CTL_OK;
    case 'n':
        to->dry_run = true;
        return CTL_OK;
    default:
        return ctl_usage(ctl, false);
    }
}

static int take_places(const struct ctl *ctl, struct dlq_filter *to, char **names)
{
    for (; *names; names++) {
        if (to->n_places == DLQ_MAX_PLACES)
            return ctl_bad(ctl, "position", *names, "at most 1000 of them; choose by a filter");
        if (!dlq_place_parse(str_of(*names), &to->places[to->n_places++]))
            return ctl_bad(ctl, "position", *names, "PARTITION@OFFSET as `dlq list` shows it");
    }
    return CTL_OK;
}

#define FILTERS                                                                                    \
    { "class", required_argument, NULL, 'c' }, { "repo", required_argument, NULL, 'r' },           \
        { "delivery", required_argument, NULL, 'd' }, { "source", required_argument, NULL, 'o' },  \
    {                                                                                              \
        "since", required_argument, NULL, 's'                                                      \
    }

static int parse(const struct ctl *ctl, const struct option *options, struct dlq_arguments *ret,
                 int argc, char **argv)
{
    int option, code = CTL_OK;

    *ret = (struct dlq_arguments){ .all = false };
    while (code == CTL_OK && (option = getopt_long(argc, argv, "", options, NULL)) != -1)
        code = take_option(ctl, ret, option);
    return code == CTL_OK ? take_places(ctl, &ret->filter, argv + optind) : code;
}

/* ---- list, show ----------------------------------------------------------------------------- */

static bool collect(void *opaque, const struct record *record)
{
    dlq_add(opaque, record);
    return true;
}

int dlq_read(struct ctl *ctl, struct dlq *ret)
{
    struct scan scan = { .from = FOLLOW_BEGINNING };
    struct why why;

    scan_add(&scan, ctl, TOPIC_DLQ);
    dlq_init(ret);
    enum err err = scan_run(&scan, ctl, collect, ret, &why);
    if (err == OK && ctl_stopped())
        err = why_set(&why, ERR_REFUSE, "interrupted: not all was read");
    dlq_settle(ret);
    if (err == OK)
        return CTL_OK;
    dlq_clear(ret);
    return ctl_fail(ctl, err, &why);
}

static int list(struct ctl *ctl, int argc, char **argv)
{
    static const struct option options[] = {
        FILTERS, { "all", no_argument, NULL, 'a' }, { "json", no_argument, NULL, 'j' }, { 0 }
    };
    struct dlq_arguments arguments;
    struct dlq dlq;
    size_t shown = 0, resolved = 0;
    int code = parse(ctl, options, &arguments, argc, argv);

    if (code == CTL_OK)
        code = dlq_read(ctl, &dlq);
    if (code != CTL_OK)
        return code;
    dlq_by_time(&dlq);
    for (size_t i = 0; i < dlq.n; i++) {
        const struct dlq_entry *entry = &dlq.entries[i];
        if (!dlq_matches(&arguments.filter, &ctl->topics, entry))
            continue;
        resolved += entry->state != DLQ_OPEN;
        if (entry->state != DLQ_OPEN && !arguments.all)
            continue;
        if (!shown++ && !arguments.json)
            dlq_print_head();
        dlq_print(entry, arguments.json, &ctl->topics);
    }
    if (!arguments.json)
        printf("%zu %s, %zu resolved%s\n", shown, arguments.all ? "shown" : "open", resolved,
               resolved && !arguments.all ? " (--all shows them)" : "");
    dlq_clear(&dlq);
    return CTL_OK;
}

struct showing {
    const struct dlq_place *at;
    struct dlq *dlq;
    bool found;
};

static bool show_one(void *opaque, const struct record *record)
{
    struct showing *s = opaque;

    dlq_add(s->dlq, record);
    if (record->at.partition != s->at->partition || record->at.offset != s->at->offset)
        return true;
    s->found = true;
    dlq_print_record(record);
    return true;
}

static int show(struct ctl *ctl, int argc, char **argv)
{
    static const struct option options[] = { { 0 } };
    struct scan scan = { .from = FOLLOW_BEGINNING };
    struct dlq_arguments arguments;
    struct dlq dlq;
    struct why why;
    int code = parse(ctl, options, &arguments, argc, argv);

    if (code != CTL_OK)
        return code;
    if (arguments.filter.n_places != 1)
        return ctl_usage(ctl, false);
    struct showing showing = { .at = &arguments.filter.places[0], .dlq = &dlq };
    scan_add(&scan, ctl, TOPIC_DLQ);
    dlq_init(&dlq);
    enum err err = scan_run(&scan, ctl, show_one, &showing, &why);
    if (err == OK && ctl_stopped()) /* a resolution may come later */
        err = why_set(&why, ERR_REFUSE, "interrupted: not all was read");
    dlq_settle(&dlq);
    const struct dlq_entry *entry = dlq_find(&dlq, *showing.at);
    if (err != OK)
        code = ctl_fail(ctl, err, &why);
    else if (!showing.found)
        code = (fprintf(stderr, "crcrctl %s: nothing is there, or it is older than 30 days\n",
                        ctl->verb),
                CTL_PROBLEM);
    else
        printf("state: %s\n", entry ? dlq_state_name(entry->state) : "a resolution itself");
    dlq_clear(&dlq);
    return code;
}

/* ---- replay, drop --------------------------------------------------------------------------- */

static int resolve(struct ctl *ctl, int argc, char **argv, enum dlq_state to)
{
    static const struct option options[] = { FILTERS,
                                             { "rate", required_argument, NULL, 'R' },
                                             { "dry-run", no_argument, NULL, 'n' },
                                             { 0 } };
    struct dlq_arguments arguments;
    const struct dlq_filter *f = &arguments.filter;
    int code = parse(ctl, options, &arguments, argc, argv);

    if (code != CTL_OK)
        return code;
    if (!f->n_places && !f->class.len && !f->repo.len && !f->delivery.len && !f->source.len &&
        !f->since_ms) {
        fprintf(stderr, "crcrctl %s: say which: positions, or a filter (--since 30d: all)\n",
                ctl->verb);
        return CTL_USAGE;
    }
    return dlq_resolve(ctl, &arguments, to);
}

static int replay(struct ctl *ctl, int argc, char **argv)
{
    return resolve(ctl, argc, argv, DLQ_REPLAYED);
}

static int drop(struct ctl *ctl, int argc, char **argv)
{
    return resolve(ctl, argc, argv, DLQ_DROPPED);
}

int verb_dlq(struct ctl *ctl, int argc, char **argv)
{
    static const struct {
        const char *name, *verb;
        verb_fn *run;
    } verbs[] = { { "list", "dlq list", list },
                  { "show", "dlq show", show },
                  { "replay", "dlq replay", replay },
                  { "drop", "dlq drop", drop } };

    for (size_t i = 0; argc > 1 && i < sizeof(verbs) / sizeof(*verbs); i++) {
        if (strcmp(argv[1], verbs[i].name))
            continue;
        if (argc > 2 && (!strcmp(argv[2], "--help") || !strcmp(argv[2], "-h")))
            return ctl_usage(ctl, true);
        ctl->verb = verbs[i].verb;
        return verbs[i].run(ctl, argc - 1, argv + 1);
    }
    return ctl_usage(ctl, false);
}
