/* One comment a pull request and downstream, written by one replica at a time.
 *
 *   next pull request ─▶ nothing to say, or said already: skip
 *        ▲          └──▶ lease ─▶ look again ─▶ known? ─no─▶ find at GitHub ─┐
 *        │                                        └─yes───────────┬──────────┘
 *        └──── give back the lease ◀── remember ◀── edit, create ◀┘ */
#include "reconcile_comment.h"

#include <stdio.h>
#include <stdlib.h>

#include "../common/base/log.h"
#include "../common/base/mem.h"
#include "../common/github/comments.h"
#include "../common/view/comments.h"
#include "../common/view/labels.h"
#include "reconcile_call.h"

#define OWNER_MAX 256

struct comments {
    struct target *target;
    const struct oncall_job *jobs;
    size_t n_jobs;
    struct oncall_job *of_pr; /* those of the pull request at hand; room for all */
    char *repo;               /* as the allowlist writes it; NULL: not listed */
    char **oncalls;
    struct str *oncall_names;
    size_t n_oncalls;
    size_t i; /* in jobs: the first one of the pull request at hand */
    int64_t pr;
    struct buf text, marker;
    enum oncall_word word;
    char digest[17];
    char owner[OWNER_MAX];
    bool leased;
    bool searched; /* for the comment at hand */
    struct comment_sent sent;
    enum pass_end end;
    char reason[256];
    comments_done_fn *done;
    void *opaque;
};

static struct redis *redis_of(const struct comments *c)
{
    return c->target->reconcile->redis;
}

static struct str upstream_of(const struct comments *c)
{
    return str_of(c->target->reconcile->reporter->upstream_repo);
}

static void comments_free(struct comments *c)
{
    for (size_t i = 0; i < c->n_oncalls; i++)
        free(c->oncalls[i]);
    free(c->oncalls);
    free(c->oncall_names);
    free(c->of_pr);
    free(c->repo);
    buf_clear(&c->text);
    buf_clear(&c->marker);
    free(c);
}

/* A lease that cannot be given back runs out by itself. */
static void lease_end(struct comments *c)
{
    struct why why;
    if (c->leased &&
        comment_release(redis_of(c), c->pr, str_of(c->repo), str_of(c->owner), &why) != OK)
        log_warn("comment_lease_not_given_back", LOG_STR("error", str_of(why.text)));
    c->leased = false;
}

static void comments_end(struct comments *c, enum pass_end end, const char *reason)
{
    char text[256];
    lease_end(c);
    snprintf(text, sizeof(text), "%s", reason);
    c->done(c->opaque, end, text);
    comments_free(c);
}

/* Waiting heals a Redis that is away, but not one that refuses. */
static void redis_failed(struct comments *c, enum err err, const struct why *why)
{
    comments_end(c, err == ERR_REFUSE ? PASS_FAILED : PASS_WAIT, why->text);
}

/* ---- what is to be said ---------------------------------------------------------------------- */

static void oncalls_copy(struct comments *c)
{
    struct allowlist_feed *feed = c->target->reconcile->reporter->feed;
    const struct allowlist_version *version = allowlist_feed_get(feed);
    const struct allowlist_entry *entry =
        version->list ? allowlist_find(version->list, str_of(c->target->repo)) : NULL;
    if (entry) {
        c->repo = str_dup(entry->repo);
        c->oncalls = mem_alloc(entry->n_oncalls + 1, sizeof(*c->oncalls));
        c->oncall_names = mem_alloc(entry->n_oncalls + 1, sizeof(*c->oncall_names));
        for (; c->n_oncalls < entry->n_oncalls; c->n_oncalls++) {
            c->oncalls[c->n_oncalls] = str_dup(entry->oncalls[c->n_oncalls]);
            c->oncall_names[c->n_oncalls] = str_of(c->oncalls[c->n_oncalls]);
        }
    }
    allowlist_feed_release(feed, version);
}

static void text_make(struct comments *c)
{
    struct oncall_view view = {
        .repo = str_of(c->repo),
        .head_sha = str_of(c->target->head_sha),
        .oncalls = c->oncall_names,
        .n_oncalls = c->n_oncalls,
        .jobs = c->of_pr,
    };
    for (size_t i = 0; i < c->n_jobs; i++)
        if (c->jobs[i].job->pr_number == c->pr)
            c->of_pr[view.n_jobs++] = c->jobs[i];
    buf_reset(&c->text);
    c->word = oncall_text(&view, &c->text);
    oncall_digest(str_trim(buf_str(&c->text)), c->digest); /* as it is sent, and found again */
}

/* The view says it as it should be. */
static bool is_said(const struct comments *c)
{
    if (c->word == ONCALL_RESOLVED && c->sent.known && c->sent.id == 0)
        return true;
    return c->sent.known && c->sent.id && str_is(str_of(c->sent.digest), c->digest);
}

/* *wanted: there is something to be written, as far as the view knows. */
static enum err look(struct comments *c, bool *wanted, struct why *why)
{
    char head[SHA_MAX + 1];
    *wanted = false;
    enum err err = pr_head_get(redis_of(c), c->pr, head, why);
    if (err != OK || (*head && !str_eq_nocase(str_of(head), str_of(c->target->head_sha))))
        return err;
    err = comment_sent_get(redis_of(c), c->pr, str_of(c->repo), &c->sent, why);
    *wanted = err == OK && !is_said(c);
    return err;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void step(struct comments *c);
static void comment_write(struct comments *c);

static void next_pull_request(struct comments *c)
{
    lease_end(c);
    c->i++;
    step(c);
}

/* The others are written all the same. */
static void refused(struct comments *c, const char *reason)
{
    c->end = PASS_REFUSED;
    snprintf(c->reason, sizeof(c->reason), "%s", reason);
    next_pull_request(c);
}

static void failed(struct comments *c, struct call_verdict verdict, const char *reason)
{
    struct why why;
    enum err err = verdict.look_ms > 0 ? call_put_off(c->target, verdict.look_ms, &why) : OK;
    if (err != OK)
        redis_failed(c, err, &why);
    else if (verdict.end == PASS_REFUSED)
        refused(c, reason);
    else
        comments_end(c, verdict.end, reason);
}

static bool worked(struct call_verdict verdict)
{
    return verdict.end == PASS_EQUAL && verdict.look_ms == 0;
}

static const char *reason_of(const struct github_answer *answer)
{
    return answer->reason ? answer->reason : "GitHub refused";
}

static enum err remember(struct comments *c, struct why *why)
{
    return comment_sent_put(redis_of(c), c->pr, str_of(c->repo), &c->sent,
                            &c->target->reconcile->reporter->times, why);
}

static void comment_found(void *opaque, const struct github_answer *answer,
                          const struct comment_found *found)
{
    struct comments *c = opaque;
    struct why why;
    struct call_verdict verdict = call_judge(c->target->reconcile, "comment_find", answer);
    if (!worked(verdict)) {
        failed(c, verdict, reason_of(answer));
        return;
    }
    c->sent = (struct comment_sent){ .known = true, .id = found->id };
    oncall_digest(str_trim(found->body), c->sent.digest);
    enum err err = remember(c, &why);
    if (err != OK)
        redis_failed(c, err, &why);
    else if (is_said(c))
        next_pull_request(c);
    else
        comment_write(c);
}

static void comment_search(struct comments *c)
{
    struct reconcile *r = c->target->reconcile;
    struct why why;
    c->searched = true;
    buf_reset(&c->marker);
    oncall_marker(str_of(c->repo), &c->marker);
    enum err err =
        comment_find(r->github, upstream_of(c), c->pr, buf_str(&c->marker), comment_found, c, &why);
    if (err != OK)
        failed(c, call_not_sent(r, "comment_find", err, &why), why.text);
}

static const char *write_call(const struct comments *c)
{
    return c->sent.id ? "comment_edit" : "comment_create";
}

static void comment_written(void *opaque, const struct github_answer *answer, int64_t id)
{
    struct comments *c = opaque;
    struct why why;
    struct call_verdict verdict = call_judge(c->target->reconcile, write_call(c), answer);
    bool gone = c->sent.id && (answer->status == 404 || answer->status == 410);
    if (verdict.end == PASS_REFUSED && gone && !c->searched) { /* somebody deleted it */
        comment_search(c);
        return;
    }
    if (!worked(verdict)) {
        failed(c, verdict, reason_of(answer));
        return;
    }
    log_info("oncall_comment_set", LOG_STR("repo", str_of(c->repo)), LOG_INT("pr", c->pr),
             LOG_STR("head_sha", str_of(c->target->head_sha)), LOG_INT("id", id),
             LOG_STR("says", str_of(c->word == ONCALL_FAILING ? "failing" : "resolved")));
    c->sent = (struct comment_sent){ .known = true, .id = id };
    snprintf(c->sent.digest, sizeof(c->sent.digest), "%s", c->digest);
    if (remember(c, &why) != OK) /* found again at GitHub */
        log_warn("comment_not_remembered", LOG_STR("error", str_of(why.text)));
    next_pull_request(c);
}

/* Nothing is known while a new one is on its way: without its answer it has to be looked for. */
static enum err forget(struct comments *c, struct why *why)
{
    struct comment_sent nothing = { 0 };
    return comment_sent_put(redis_of(c), c->pr, str_of(c->repo), &nothing,
                            &c->target->reconcile->reporter->times, why);
}

static void leave(struct comments *c)
{
    comments_end(c, PASS_WAIT, "the partition moves to another replica, or may have");
}

static void comment_write(struct comments *c)
{
    struct reconcile *r = c->target->reconcile;
    struct str text = str_trim(buf_str(&c->text));
    struct why why;
    if (target_is_old(c->target)) {
        leave(c);
        return;
    }
    enum err err = c->sent.id ? OK : forget(c, &why);
    if (err != OK) {
        redis_failed(c, err, &why);
        return;
    }
    err = c->sent.id
              ? comment_edit(r->github, upstream_of(c), c->sent.id, text, comment_written, c, &why)
              : comment_create(r->github, upstream_of(c), c->pr, text, comment_written, c, &why);
    if (err != OK)
        failed(c, call_not_sent(r, write_call(c), err, &why), why.text);
}

/* ---- one pull request after the other -------------------------------------------------------- */

static bool is_first_of_its_pr(const struct comments *c)
{
    for (size_t i = 0; i < c->i; i++)
        if (c->jobs[i].job->pr_number == c->jobs[c->i].job->pr_number)
            return false;
    return true;
}

/* True when a call is under way or all is over; false: nothing is to be written here. */
static bool comment_start(struct comments *c)
{
    struct why why;
    bool wanted = false, again = false;
    c->pr = c->jobs[c->i].job->pr_number;
    c->searched = false;
    text_make(c);
    if (c->word == ONCALL_NOTHING)
        return false;
    enum err err = look(c, &wanted, &why);
    if (err == OK && wanted)
        err =
            comment_lease(redis_of(c), c->pr, str_of(c->repo), str_of(c->owner), &c->leased, &why);
    if (err == OK && c->leased) /* another may have written while we had no lease */
        err = look(c, &again, &why);
    if (err != OK)
        redis_failed(c, err, &why);
    else if (wanted && !c->leased)
        comments_end(c, PASS_WAIT, "another replica writes the comment");
    else if (again && c->sent.known)
        comment_write(c);
    else if (again)
        comment_search(c);
    else {
        lease_end(c);
        return false;
    }
    return true;
}

static void step(struct comments *c)
{
    for (; c->i < c->n_jobs && !target_is_old(c->target); c->i++)
        if (is_first_of_its_pr(c) && comment_start(c))
            return;
    if (c->i < c->n_jobs)
        leave(c);
    else
        comments_end(c, c->end, c->reason);
}

void comments_start(struct target *target, const struct oncall_job *jobs, size_t n,
                    comments_done_fn *done, void *opaque)
{
    if (!target->reconcile->reporter->oncall_comments || n == 0) {
        done(opaque, PASS_EQUAL, "");
        return;
    }
    struct comments *c = mem_alloc(1, sizeof(*c));
    c->target = target;
    c->jobs = jobs;
    c->n_jobs = n;
    c->of_pr = mem_alloc(n, sizeof(*c->of_pr));
    c->end = PASS_EQUAL;
    c->done = done;
    c->opaque = opaque;
    buf_init(&c->text, ONCALL_TEXT_MAX);
    buf_init(&c->marker, 512);
    snprintf(c->owner, sizeof(c->owner), "%s/%s",
             daemon_owner(role_daemon(target->reconcile->role)), target->head_sha);
    oncalls_copy(c);
    if (!c->repo)
        c->n_jobs = 0; /* not listed any more */
    step(c);
}
