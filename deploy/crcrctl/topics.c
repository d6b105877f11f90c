#include <stdlib.h>

#include "../../common/base/mem.h"
#include "../../common/io/topic_admin.h"
#include "out.h"
#include "verbs.h"

#define TIMEOUT_MS 20000 /* a broker that has just started lists new topics late */

extern const char embedded_topics_conf[];

/* What still differs after `create` is for people to decide on, and no reason for the daemons not
 * to start: in compose and in a Job they wait for it to succeed. */
static int difference_print(const struct topic_specs *specs, const char *prefix,
                            const struct topic_report *reports, bool create, bool json)
{
    static const char *const names[] = {
        [TOPIC_STATE_OK] = "ok",           [TOPIC_STATE_MISSING] = "missing",
        [TOPIC_STATE_DIFFERS] = "differs", [TOPIC_STATE_CREATED] = "created",
        [TOPIC_STATE_WIDENED] = "widened",
    };
    size_t differ = 0, missing = 0;
    for (size_t i = 0; i < specs->n; i++) {
        const struct topic_report *r = &reports[i];
        char name[256];
        FORMAT(name, "%s%s", prefix, specs->at[i].name);
        if (json)
            put_json(NULL, "{topic:%s state:%s detail:%s}", name, names[r->state], r->detail);
        else
            printf("%-8s %s%s%s\n", names[r->state], name, *r->detail ? ": " : "", r->detail);
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

static int topics_compare(struct ctl *ctl, const struct args *args, bool create)
{
    const char *prefix = config_text(ctl->config, "CRCR_TOPIC_PREFIX");
    struct topic_report *reports = NULL;
    struct topic_admin *admin = NULL;
    struct topic_specs specs;
    struct why why;
    enum err err =
        args->file ? topic_specs_read(&specs, args->file, &why)
                   : topic_specs_parse(&specs, "topics.conf", str_of(embedded_topics_conf), &why);
    if (err)
        return ctl_fail(ctl, err, &why);
    reports = mem_alloc(specs.n, sizeof(*reports));
    err = topic_admin_new(&admin, &ctl->kafka, TIMEOUT_MS, &why);
    if (!err)
        err = topic_admin_compare(admin, &specs, prefix, create, (int)args->replication, reports,
                                  &why);
    int code = !err ? difference_print(&specs, prefix, reports, create, args->json)
                    : ctl_fail(ctl, err, &why);
    topic_admin_free(admin);
    free(reports);
    topic_specs_clear(&specs);
    return code;
}

int verb_topics_create(struct ctl *ctl, const struct args *args)
{
    return topics_compare(ctl, args, true);
}

int verb_topics_check(struct ctl *ctl, const struct args *args)
{
    return topics_compare(ctl, args, false);
}
