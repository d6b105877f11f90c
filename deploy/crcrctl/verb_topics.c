#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/base/mem.h"
#include "../../common/io/topic_admin.h"
#include "ctl.h"

#define TIMEOUT_MS  20000 /* a young broker tells of new topics when it gets to it */
#define REPLICATION 3     /* where there are as many brokers */

extern const char embedded_topics_conf[];

struct arguments {
    const char *file;
    int replication; /* 0: not given */
    bool create;
};

static int parse(const struct ctl *ctl, struct arguments *ret, int argc, char **argv)
{
    static const struct option options[] = {
        { "file", required_argument, NULL, 'f' },
        { "replication", required_argument, NULL, 'r' },
        { NULL, 0, NULL, 0 },
    };
    int option;
    uint64_t number;

    *ret = (struct arguments){ .file = NULL };
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'f') {
            ret->file = optarg;
        } else if (option == 'r') {
            if (!str_to_u64(str_of(optarg), &number) || number < 1 || number > 100)
                return ctl_bad(ctl, "--replication", optarg, "a number from 1 to 100");
            ret->replication = (int)number;
        } else {
            return ctl_usage(ctl, false);
        }
    }
    if (optind + 1 != argc)
        return ctl_usage(ctl, false);
    ret->create = !strcmp(argv[optind], "create");
    if (!ret->create && strcmp(argv[optind], "check"))
        return ctl_bad(ctl, "topics", argv[optind], "create or check");
    return CTL_OK;
}

static enum err create_or_widen(struct topic_admin *admin, const struct topic_specs *specs,
                                const char *prefix, int replication, struct topic_report *reports,
                                struct why *why)
{
    int brokers;
    enum err err = topic_admin_brokers(admin, &brokers, why);

    if (err == OK && replication == 0)
        replication = brokers < REPLICATION ? brokers : REPLICATION;
    for (size_t i = 0; err == OK && i < specs->n; i++) {
        if (reports[i].state == TOPIC_STATE_DIFFERS)
            err = topic_admin_widen(admin, &specs->at[i], prefix, &reports[i], why);
        if (reports[i].state != TOPIC_STATE_MISSING)
            continue;
        err = topic_admin_create(admin, &specs->at[i], prefix, replication, why);
        if (err == OK)
            reports[i].state = TOPIC_STATE_CREATED;
    }
    if (err == OK)
        err = topic_admin_await_topics(admin, specs, prefix, why);
    return err;
}

/* What still differs after `create` is for people to decide on, and no reason for the daemons not
 * to start: in compose and in a Job they wait for it to succeed. */
static int print(const struct topic_specs *specs, const char *prefix,
                 const struct topic_report *reports, bool create)
{
    static const char *const names[] = {
        [TOPIC_STATE_OK] = "ok",           [TOPIC_STATE_MISSING] = "missing",
        [TOPIC_STATE_DIFFERS] = "differs", [TOPIC_STATE_CREATED] = "created",
        [TOPIC_STATE_WIDENED] = "widened",
    };
    size_t differ = 0, missing = 0;

    for (size_t i = 0; i < specs->n; i++) {
        const struct topic_report *r = &reports[i];
        printf("%-8s %s%s%s%s\n", names[r->state], prefix, specs->at[i].name,
               *r->detail ? ": " : "", r->detail);
        differ += r->state == TOPIC_STATE_DIFFERS;
        missing += r->state == TOPIC_STATE_MISSING;
    }
    if (create && differ)
        fprintf(
            stderr,
            "crcrctl: warning: %zu topic%s differ from the file in what create does not change; "
            "deploy/README.md, Upgrade\n",
            differ, differ == 1 ? "" : "s");
    return missing || (differ && !create) ? CTL_PROBLEM : CTL_OK;
}

static int run(struct ctl *ctl, const struct arguments *arguments, const struct topic_specs *specs)
{
    const char *prefix = config_text(ctl->config, "CRCR_TOPIC_PREFIX");
    struct topic_report *reports = mem_alloc(specs->n, sizeof(*reports));
    struct topic_admin *admin = NULL;
    struct why why;
    int code;

    enum err err = topic_admin_new(&admin, &ctl->kafka, TIMEOUT_MS, &why);
    if (err == OK)
        err = topic_admin_check(admin, specs, prefix, reports, &why);
    if (err == OK && arguments->create)
        err = create_or_widen(admin, specs, prefix, arguments->replication, reports, &why);
    code = err == OK ? print(specs, prefix, reports, arguments->create) : ctl_fail(ctl, err, &why);
    topic_admin_free(admin);
    free(reports);
    return code;
}

int verb_topics(struct ctl *ctl, int argc, char **argv)
{
    struct arguments arguments;
    struct topic_specs specs;
    struct why why;
    int code = parse(ctl, &arguments, argc, argv);

    if (code != CTL_OK)
        return code;
    enum err err = arguments.file ? topic_specs_read(&specs, arguments.file, &why)
                                  : topic_specs_parse(&specs, "topics.conf",
                                                      str_of(embedded_topics_conf), &why);
    if (err != OK)
        return ctl_fail(ctl, err, &why);
    code = run(ctl, &arguments, &specs);
    topic_specs_clear(&specs);
    return code;
}
