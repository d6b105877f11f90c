#include "keys.h"

#include <string.h>

static struct str add(struct key *to, const char *between, struct str text)
{
    struct str parts[] = { str_of(between), text };
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        size_t room = VIEW_KEY_MAX - to->len, n = parts[i].len < room ? parts[i].len : room;
        if (n > 0)
            memcpy(to->text + to->len, parts[i].ptr, n);
        to->len += n;
    }
    to->text[to->len] = '\0';
    return (struct str){ to->text, to->len };
}

/* GitHub ignores the case of owner and repository names; so must keys made of them. */
static struct str add_lower(struct key *to, const char *between, struct str name)
{
    size_t from = to->len + strlen(between);
    struct str key = add(to, between, name);
    for (char *at = to->text + from; at < to->text + key.len; at++)
        *at = (char)(*at >= 'A' && *at <= 'Z' ? *at - 'A' + 'a' : *at);
    return key;
}

static struct str of_text(struct key *to, const char *kind, struct str text)
{
    to->len = 0;
    (void)add(to, kind, STR_LIT(":"));
    return add(to, "", text);
}

static struct str of_repo(struct key *to, const char *kind, struct str repo)
{
    (void)of_text(to, kind, STR_LIT(""));
    return add_lower(to, "", repo);
}

static struct str of_number(struct key *to, const char *kind, int64_t number)
{
    return of_text(to, kind, STR_NUMBER(number));
}

/* Of a delivery or a commit, and a repository. */
static struct str of_both(struct key *to, const char *kind, struct str first, struct str repo)
{
    (void)of_text(to, kind, first);
    return add_lower(to, "/", repo);
}

static struct str of_repo_and_day(struct key *to, const char *kind, struct str repo, int64_t day)
{
    (void)of_repo(to, kind, repo);
    return add(to, "|", STR_NUMBER(day));
}

struct str key_claim(struct key *to, struct str delivery, struct str repo, const char *kind,
                     struct str run_id, struct str again)
{
    (void)of_text(to, "claim", delivery);
    (void)add_lower(to, "|", repo);
    (void)add(to, "|", str_of(kind));
    (void)add(to, "|", run_id);
    return add(to, again.len ? "|" : "", again);
}

struct str key_seq(struct key *to, struct str repo, struct str event_key)
{
    (void)of_repo(to, "seq", repo);
    return add(to, "|", event_key);
}

struct str key_rate(struct key *to, struct str repo, const char *suffix)
{
    (void)of_repo(to, "rate", repo);
    return add(to, suffix, STR_LIT(""));
}

struct str key_budget(struct key *to, struct str account)
{
    return of_repo(to, "budget:us", account);
}

struct str key_budget_share(struct key *to, struct str account, struct str downstream)
{
    (void)key_budget(to, account);
    return add_lower(to, "|", downstream);
}

struct str key_job(struct key *to, struct str job_key)
{
    return of_text(to, "job", job_key);
}

struct str key_jobs(struct key *to, struct str delivery, struct str repo, struct str run_id)
{
    (void)of_both(to, "jobs", delivery, repo);
    return add(to, "/", run_id);
}

struct str key_dispatch(struct key *to, struct str delivery, struct str repo)
{
    return of_both(to, "dispatch", delivery, repo);
}

struct str key_delivery(struct key *to, struct str delivery)
{
    return of_text(to, "delivery", delivery);
}

struct str key_self(struct key *to, struct str delivery)
{
    return of_text(to, "self", delivery);
}

struct str key_selfrun(struct key *to, struct str run, struct str repo)
{
    return of_both(to, "selfrun", run, repo);
}

struct str key_pr(struct key *to, int64_t pr)
{
    return of_number(to, "pr", pr);
}

struct str key_ids(struct key *to, int64_t day)
{
    return of_number(to, "ids", day);
}

struct str key_repo(struct key *to, struct str repo, const char *suffix)
{
    (void)of_repo(to, "repo", repo);
    return add(to, suffix, STR_LIT(""));
}

struct str key_spent(struct key *to, struct str repo)
{
    return of_repo(to, "spent", repo);
}

struct str key_head(struct key *to, struct str sha, struct str repo)
{
    return of_both(to, "head", sha, repo);
}

struct str key_sent(struct key *to, struct str sha, struct str repo)
{
    return of_both(to, "sent", sha, repo);
}

struct str key_runs(struct key *to, struct str sha, struct str repo)
{
    return of_both(to, "runs", sha, repo);
}

struct str key_labels(struct key *to, int64_t pr)
{
    return of_number(to, "labels", pr);
}

struct str key_check(struct key *to, struct str sha, struct str name)
{
    (void)of_text(to, "check", sha);
    return add(to, "/", name);
}

struct str key_comment(struct key *to, int64_t pr, struct str repo)
{
    return of_both(to, "comment", STR_NUMBER(pr), repo);
}

struct str key_commit(struct key *to, struct str sha)
{
    return of_repo(to, "commit", sha);
}

struct str key_tallied(struct key *to, struct str delivery, struct str repo)
{
    return of_both(to, "tallied", delivery, repo);
}

struct str key_hours(struct key *to, struct str repo, int64_t day)
{
    return of_repo_and_day(to, "hours", repo, day);
}

struct str key_day(struct key *to, struct str repo, int64_t day)
{
    return of_repo_and_day(to, "day", repo, day);
}
