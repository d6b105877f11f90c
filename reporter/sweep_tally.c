#include "sweep_tally.h"

#include "../common/base/log.h"
#include "../common/view/due.h"
#include "../common/view/hours.h"
#include "../common/view/jobs.h"
#include "../common/view/keys.h"
#include "tally.h"

#define JOBS_MAX 5000 /* of one delivery and downstream; those that come later are not counted */

/* The lines are read before the jobs are: whoever counts later jobs meanwhile replaces them, and
 * then this count is dropped. *done false: it is. */
static enum err count(struct redis *r, struct str delivery, struct str repo, int64_t now_ms,
                      int64_t ttl_s, bool *done, struct why *why)
{
    struct buf CLEANUP(buf_clear) before = BUF_INIT(HOURS_TEXT_MAX);
    struct buf CLEANUP(buf_clear) after = BUF_INIT(HOURS_TEXT_MAX);
    struct job_list CLEANUP(job_list_clear) jobs = { NULL, 0 };
    *done = true;
    enum err err = hours_tallied_get(r, delivery, repo, &before, why);
    if (!err)
        err = jobs_of_dispatch(r, delivery, repo, true, JOBS_MAX, &jobs, why);
    if (err)
        return err;
    tally(jobs.at, jobs.n, &after);
    if (str_eq(buf_str(&before), buf_str(&after)))
        return OK;
    return hours_replace(r, delivery, repo, buf_str(&before), buf_str(&after), now_ms, ttl_s, done,
                         why);
}

enum err sweep_tally(struct redis *r, int64_t now_ms, int64_t ttl_s, size_t most, size_t *n,
                     struct why *why)
{
    struct view_index CLEANUP(view_index_clear) list = { NULL, 0 };
    int64_t past;
    *n = 0;
    enum err err = due_take(r, KEY_TALLY, now_ms, most, &list, &past, why);
    for (size_t i = 0; !err && i < list.n; i++) {
        struct str repo = str_of(list.at[i].name), delivery = STR_NONE;
        bool done = true;
        if (str_split(&repo, '/', &delivery))
            err = count(r, delivery, repo, now_ms, ttl_s, &done, why);
        if (!err && done)
            err = due_remove(r, KEY_TALLY, &list.at[i], why);
        if (err == ERR_REFUSE) {
            log_warn("not_counted", LOG_STR("delivery", delivery), LOG_STR("repo", repo),
                     LOG_STR("error", str_of(why->text)));
            err = OK;
        }
        *n += !err;
    }
    return err;
}
