#include "keys.h"

#include <inttypes.h>

/* GitHub ignores the case of owner and repository names; so must keys made of them. */
static void put_lower(struct buf *to, struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        buf_putc(to, (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c));
    }
}

static void start(struct buf *to, const char *kind)
{
    buf_reset(to);
    buf_puts(to, kind);
    buf_putc(to, ':');
}

static struct str of_text(struct buf *to, const char *kind, struct str text)
{
    start(to, kind);
    buf_put(to, text);
    return buf_str(to);
}

static struct str of_repo(struct buf *to, const char *kind, struct str repo)
{
    start(to, kind);
    put_lower(to, repo);
    return buf_str(to);
}

static struct str of_number(struct buf *to, const char *kind, int64_t number)
{
    start(to, kind);
    buf_printf(to, "%" PRId64, number);
    return buf_str(to);
}

struct str key_claim(struct buf *to, struct str delivery, struct str repo, const char *kind,
                     struct str run_id)
{
    start(to, "claim");
    buf_put(to, delivery);
    buf_putc(to, '|');
    put_lower(to, repo);
    buf_putc(to, '|');
    buf_puts(to, kind);
    buf_putc(to, '|');
    buf_put(to, run_id);
    return buf_str(to);
}

struct str key_claim_again(struct buf *to, struct str delivery, struct str repo, const char *kind,
                           struct str run_id, struct str again)
{
    (void)key_claim(to, delivery, repo, kind, run_id);
    if (again.len) {
        buf_putc(to, '|');
        buf_put(to, again);
    }
    return buf_str(to);
}

struct str key_seq(struct buf *to, struct str repo, struct str event_key)
{
    start(to, "seq");
    put_lower(to, repo);
    buf_putc(to, '|');
    buf_put(to, event_key);
    return buf_str(to);
}

struct str key_rate(struct buf *to, struct str repo, const char *suffix)
{
    (void)of_repo(to, "rate", repo);
    buf_puts(to, suffix);
    return buf_str(to);
}

struct str key_budget(struct buf *to, struct str account)
{
    return of_repo(to, "budget", account);
}

struct str key_budget_share(struct buf *to, struct str account, struct str downstream)
{
    (void)key_budget(to, account);
    buf_putc(to, '|');
    put_lower(to, downstream);
    return buf_str(to);
}

struct str key_job(struct buf *to, struct str job_key)
{
    return of_text(to, "job", job_key);
}

static struct str of_delivery_and_repo(struct buf *to, const char *kind, struct str delivery,
                                       struct str repo)
{
    start(to, kind);
    buf_put(to, delivery);
    buf_putc(to, '/');
    put_lower(to, repo);
    return buf_str(to);
}

struct str key_dispatch(struct buf *to, struct str delivery, struct str repo)
{
    return of_delivery_and_repo(to, "dispatch", delivery, repo);
}

struct str key_delivery(struct buf *to, struct str delivery)
{
    return of_text(to, "delivery", delivery);
}

struct str key_self(struct buf *to, struct str delivery)
{
    return of_text(to, "self", delivery);
}

struct str key_pr(struct buf *to, int64_t pr)
{
    return of_number(to, "pr", pr);
}

struct str key_ids(struct buf *to, int64_t day)
{
    return of_number(to, "ids", day);
}

struct str key_repo(struct buf *to, struct str repo)
{
    return of_repo(to, "repo", repo);
}

struct str key_spent(struct buf *to, struct str repo)
{
    return of_repo(to, "spent", repo);
}

static struct str of_head(struct buf *to, const char *kind, struct str sha, struct str repo)
{
    start(to, kind);
    buf_put(to, sha);
    buf_putc(to, '/');
    put_lower(to, repo);
    return buf_str(to);
}

struct str key_head(struct buf *to, struct str sha, struct str repo)
{
    return of_head(to, "head", sha, repo);
}

struct str key_sent(struct buf *to, struct str sha, struct str repo)
{
    return of_head(to, "sent", sha, repo);
}

struct str key_runs(struct buf *to, struct str sha, struct str repo)
{
    return of_head(to, "runs", sha, repo);
}

struct str key_labels(struct buf *to, int64_t pr)
{
    return of_number(to, "labels", pr);
}

struct str key_check(struct buf *to, struct str sha, struct str name)
{
    start(to, "check");
    buf_put(to, sha);
    buf_putc(to, '/');
    buf_put(to, name);
    return buf_str(to);
}

static struct str of_pr_and_repo(struct buf *to, const char *kind, int64_t pr, struct str repo)
{
    of_number(to, kind, pr);
    buf_putc(to, '/');
    put_lower(to, repo);
    return buf_str(to);
}

struct str key_comment(struct buf *to, int64_t pr, struct str repo)
{
    return of_pr_and_repo(to, "comment", pr, repo);
}

struct str key_comment_lease(struct buf *to, int64_t pr, struct str repo)
{
    return of_pr_and_repo(to, "comment:lease", pr, repo);
}

struct str key_commit(struct buf *to, struct str sha)
{
    start(to, "commit");
    put_lower(to, sha);
    return buf_str(to);
}

struct str key_tallied(struct buf *to, struct str delivery, struct str repo)
{
    return of_delivery_and_repo(to, "tallied", delivery, repo);
}

static struct str of_repo_and_day(struct buf *to, const char *kind, struct str repo, int64_t day)
{
    of_repo(to, kind, repo);
    buf_printf(to, "|%" PRId64, day);
    return buf_str(to);
}

struct str key_hours(struct buf *to, struct str repo, int64_t day)
{
    return of_repo_and_day(to, "hours", repo, day);
}

struct str key_day(struct buf *to, struct str repo, int64_t day)
{
    return of_repo_and_day(to, "day", repo, day);
}
