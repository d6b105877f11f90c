/* The comments of a pass: one a pull request and downstream, written by one replica at a time.
 *
 *   nothing to say, or said already: skip
 *        │ else
 *        └─▶ lease ─▶ read again ─▶ plan ─▶ find, edit or create ─▶ remember ─▶ give back the lease
 *                                     ▲       │
 *                                     └─found─┘ */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/base/log.h"
#include "../common/base/mem.h"
#include "../common/github/comments.h"
#include "../common/view/lease.h"
#include "../common/view/pull_requests.h"
#include "reconcile.h"

#define MEMBER_MAX (STR_NUMBER_SIZE + 1 + REPO_MAX)

static struct redis *redis_of(const struct pass *p)
{
    return p->target->reconcile->redis;
}

/* <pr>/<repo> */
static struct str member_of(const struct pass *p, char to[MEMBER_MAX])
{
    snprintf(to, MEMBER_MAX, "%" PRId64 "/", action_at(p)->pr);
    size_t len = strlen(to);
    str_lower(to + len, MEMBER_MAX - len, str_of(p->comment.repo));
    return str_of(to);
}

/* A lease that cannot be given back expires by itself. */
void comment_end(struct pass *p)
{
    struct pass_comment *c = &p->comment;
    char member[MEMBER_MAX];
    struct why why;
    if (c->lease_expires_ms && lease_finish(redis_of(p), LEASE_COMMENT, member_of(p, member),
                                            c->lease_expires_ms, 0, &why))
        log_warn("comment_lease_not_given_back", LOG_STR("error", str_of(why.text)));
    free(c->repo);
    buf_clear(&c->text);
    *c = (struct pass_comment){ .repo = NULL };
}

/* Makes the text: of the jobs of the pull request that have a check run, for the on-calls of the
 * allowlist in force. False: the downstream is not listed any more. */
static bool text_make(struct pass *p)
{
    struct pass_comment *c = &p->comment;
    struct allowlist_feed *feed = p->target->reconcile->reporter->feed;
    const struct allowlist_version *version = allowlist_feed_get(feed);
    const struct allowlist_entry *entry = allowlist_find(version->list, str_of(p->target->repo));
    buf_init(&c->text, ONCALL_TEXT_MAX);
    if (entry) {
        struct oncall_job *jobs = mem_alloc(p->n, sizeof(*jobs));
        struct oncall_view view = {
            .repo = entry->repo,
            .head_sha = str_of(p->target->head_sha),
            .oncalls = entry->oncalls,
            .n_oncalls = entry->n_oncalls,
            .jobs = jobs,
        };
        for (size_t i = 0; i < p->n; i++)
            if (plan_has_check(&p->wanted[i], &p->sent[i]) &&
                p->wanted[i].job->pr_number == action_at(p)->pr)
                jobs[view.n_jobs++] =
                    (struct oncall_job){ p->wanted[i].job, p->wanted[i].details_url };
        c->word = oncall_text(&view, &c->text);
        oncall_digest(str_trim(buf_str(&c->text)), c->digest); /* as it is sent, and found again */
        c->repo = str_dup(entry->repo);
        free(jobs);
    }
    allowlist_feed_release(feed, version);
    return entry;
}

/* *next: what the plan has for the comment, as far as the view knows. Only the head commit that the
 * newest webhook of the pull request named has a say. */
static enum err comment_look(struct pass *p, enum action_kind *next, struct why *why)
{
    struct pass_comment *c = &p->comment;
    struct pr_now CLEANUP(pr_now_clear) pr = { .labels = NULL };
    *next = ACTION_NONE;
    enum err err = pr_now_get(redis_of(p), action_at(p)->pr, &pr, why);
    if (err || (pr.head_sha[0] && !str_eq_nocase(str_of(pr.head_sha), str_of(p->target->head_sha))))
        return err;
    err = comment_sent_get(redis_of(p), action_at(p)->pr, str_of(c->repo), &c->sent, why);
    if (!err)
        *next = plan_comment(c->word, c->digest, &c->sent);
    return err;
}

void comment_prepare(struct pass *p)
{
    struct pass_comment *c = &p->comment;
    enum action_kind next = ACTION_NONE;
    char member[MEMBER_MAX];
    struct why why;
    enum err err = OK;
    if (text_make(p) && c->word != ONCALL_NOTHING)
        err = comment_look(p, &next, &why);
    bool wanted = !err && next != ACTION_NONE;
    if (wanted)
        err = lease_take(redis_of(p), LEASE_COMMENT, member_of(p, member), &c->lease_expires_ms,
                         &why);
    if (!err && c->lease_expires_ms) /* another may have written while we had no lease */
        err = comment_look(p, &next, &why);
    if (err)
        pass_redis_failed(p, err, &why);
    else if (wanted && !c->lease_expires_ms)
        pass_stop(p, PASS_WAIT, "another replica writes the comment");
    else if (next == ACTION_NONE)
        pass_next(p);
    else
        action_at(p)->kind = next;
}

static enum err remember(struct pass *p, const struct comment_sent *sent, struct why *why)
{
    return comment_sent_put(redis_of(p), action_at(p)->pr, str_of(p->comment.repo), sent,
                            &p->target->reconcile->reporter->times, why);
}

/* Whatever there is to say later, it would be refused again; known until the view forgets it. */
static void remember_refusal(struct pass *p)
{
    struct comment_sent sent = { .known = true, .id = p->comment.sent.id, .refused = true };
    struct why why;
    if (remember(p, &sent, &why))
        log_warn("comment_not_remembered", LOG_STR("error", str_of(why.text)));
}

static void comment_found(void *opaque, const struct github_answer *answer,
                          const struct comment_found *found)
{
    struct pass *p = opaque;
    struct pass_comment *c = &p->comment;
    struct why why;
    if (pass_refused_for_good(p, answer))
        remember_refusal(p);
    if (pass_answered(p, answer)) {
        c->sent = (struct comment_sent){ .known = true, .id = found->id };
        oncall_digest(str_trim(found->body), c->sent.digest);
        enum err err = remember(p, &c->sent, &why);
        action_at(p)->kind = plan_comment(c->word, c->digest, &c->sent);
        if (err)
            pass_redis_failed(p, err, &why);
        else if (action_at(p)->kind == ACTION_NONE)
            pass_next(p);
    }
    pass_step(p);
}

static void comment_written(void *opaque, const struct github_answer *answer, int64_t id)
{
    struct pass *p = opaque;
    struct pass_comment *c = &p->comment;
    struct why why;
    bool gone = action_at(p)->kind == ACTION_COMMENT_EDIT && answer->err == ERR_REFUSE &&
                (answer->status == 404 || answer->status == 410);
    if (gone && !c->searched) { /* somebody deleted it */
        pass_count(p, "comment_edit", false, answer);
        action_at(p)->kind = ACTION_COMMENT_FIND;
        pass_step(p);
        return;
    }
    if (pass_refused_for_good(p, answer))
        remember_refusal(p);
    if (pass_answered(p, answer)) {
        log_info("oncall_comment_set", LOG_STR("repo", str_of(c->repo)),
                 LOG_INT("pr", action_at(p)->pr), LOG_STR("head_sha", str_of(p->target->head_sha)),
                 LOG_INT("id", id),
                 LOG_STR("says", str_of(c->word == ONCALL_FAILING ? "failing" : "resolved")));
        c->sent = (struct comment_sent){ .known = true, .id = id };
        snprintf(c->sent.digest, sizeof(c->sent.digest), "%s", c->digest);
        if (remember(p, &c->sent, &why)) /* found again at GitHub */
            log_warn("comment_not_remembered", LOG_STR("error", str_of(why.text)));
        pass_next(p);
    }
    pass_step(p);
}

enum err comment_call(struct pass *p, struct why *why)
{
    struct github *g = p->target->reconcile->github;
    struct pass_comment *c = &p->comment;
    const struct action *a = action_at(p);
    struct str text = str_trim(buf_str(&c->text));
    if (a->kind == ACTION_COMMENT_EDIT)
        return comment_edit(g, upstream_of(p), c->sent.id, text, comment_written, p, why);
    if (a->kind == ACTION_COMMENT_CREATE) {
        /* Nothing is known while a new one is on its way: without its answer it is looked for. */
        const struct comment_sent nothing = { 0 };
        enum err err = remember(p, &nothing, why);
        if (err) {
            pass_redis_failed(p, err, why);
            return err;
        }
        return comment_create(g, upstream_of(p), a->pr, text, comment_written, p, why);
    }
    struct buf CLEANUP(buf_clear) marker = BUF_INIT(512);
    oncall_marker(str_of(c->repo), &marker);
    c->searched = true;
    return comment_find(g, upstream_of(p), a->pr, buf_str(&marker), comment_found, p, why);
}
