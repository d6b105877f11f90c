#include "delivery_page.h"

#include <stdio.h>
#include <stdlib.h>

#include "../../common/base/clock.h"
#include "../../common/base/json_put.h"
#include "../../common/base/json_text.h"
#include "../../common/base/mem.h"
#include "../../common/model/ids.h"
#include "../../common/view/checks.h"
#include "../../common/view/indexes.h"
#include "api.h"

#define PREFIX_SHOWN 20

/* Of each dispatch what was last sent of its commit's aggregate check run. */
static enum err checks_get(struct redis *r, const struct dispatch_view *dispatches, size_t n,
                           const char **ret, struct why *why)
{
    enum err err = OK;
    for (size_t i = 0; !err && i < n; i++) {
        struct check_list CLEANUP(check_list_clear) list = { NULL, 0 };
        char name[REPO_MAX + 8];
        ret[i] = NULL;
        if (dispatches[i].level < 3 || !*dispatches[i].head_sha)
            continue;
        snprintf(name, sizeof(name), "crcr/%s", dispatches[i].repo);
        err = checks_sent_list(r, str_of(dispatches[i].head_sha), str_of(name), &list, why);
        for (size_t k = 0; !err && k < list.n; k++)
            if (!ret[i] || !list.at[k].sent.completed)
                ret[i] = list.at[k].sent.completed ? "completed" : "open";
    }
    return err;
}

enum err delivery_put(struct redis *r, const struct reporter *reporter, struct str id, size_t limit,
                      size_t full_max, struct buf *to, bool *known, struct why *why)
{
    struct job_list CLEANUP(job_list_clear) jobs = { NULL, 0 };
    struct dispatch_view *dispatches = NULL;
    size_t n = 0;
    enum commit_seen seen = COMMIT_UNKNOWN;
    enum err err = jobs_of_delivery(r, id, limit, full_max, &jobs, why);
    /* A nightly or periodic run names the commit itself, as its delivery. */
    if (!err && jobs.n > 0 && result_record_is_self(&jobs.at[0]) && sha_valid(id))
        err = commit_seen_get(r, id, &seen, why);
    if (!err)
        err = dispatches_of_delivery(r, id, limit, &dispatches, &n, why);
    const char **checks = full_max > 0 && !err ? mem_alloc(n + 1, sizeof(*checks)) : NULL;
    if (checks)
        err = checks_get(r, dispatches, n, checks, why);
    if (err) {
        free(checks);
        free(dispatches);
        return err;
    }
    const struct allowlist_version *version = allowlist_feed_get(reporter->feed);
    const struct api_delivery delivery = { .id = id,
                                           .jobs = jobs.at,
                                           .n_jobs = jobs.n,
                                           .dispatches = dispatches,
                                           .n_dispatches = n,
                                           .commit = seen,
                                           .more_jobs = jobs.n >= limit,
                                           .version = version,
                                           .silent_ms = checks ? reporter->times.overdue_ms : 0,
                                           .checks = checks };
    *known = jobs.n + n > 0;
    api_put_delivery(to, &delivery);
    allowlist_feed_release(reporter->feed, version);
    free(checks);
    free(dispatches);
    return OK;
}

enum err delivery_prefix_put(struct redis *r, const struct reporter *reporter, struct str prefix,
                             struct buf *to, bool *known, struct why *why)
{
    struct view_index CLEANUP(view_index_clear) found = { NULL, 0 };
    enum err err = deliveries_by_prefix(r, prefix, clock_wall_ms(), reporter->times.ttl_s,
                                        PREFIX_SHOWN, &found, why);
    if (!err && found.n == 1)
        return delivery_put(r, reporter, str_of(found.at[0].name), DELIVERY_JOBS, DELIVERY_FULL, to,
                            known, why);
    *known = found.n > 0;
    buf_puts(to, "{\"matches\":[");
    for (size_t i = 0; i < found.n; i++) {
        json_put_comma(to);
        json_text_put(to, str_of(found.at[i].name));
    }
    buf_puts(to, "]}");
    return err;
}
