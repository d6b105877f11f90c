/* `crcrctl probe`: asks the topics, GitHub and the view; what it means is probe.c. */
#include <jansson.h>
#include <string.h>

#include "../../common/io/http_client.h"
#include "../../common/model/ids.h"
#include "../../common/model/json_member.h"
#include "../../common/view/checks.h"
#include "../../common/view/pull_requests.h"
#include "allowlist.h"
#include "app_api.h"
#include "out.h"
#include "probe.h"
#include "scan.h"
#include "summary.h"
#include "verbs.h"

#define BODY_MAX  (4u << 20)
#define FILE_MAX  (1u << 20)
#define TEXT_MAX  (64u << 10)
#define WORKFLOWS 100 /* more are not looked at */
#define JOBS_MAX  50
#define FOLDER    ".github/workflows"

/* ---- GitHub ---------------------------------------------------------------------------------- */

static enum probe_asked asked_of(enum err err)
{
    return !err ? PROBE_ANSWERED : err == ERR_REFUSE ? PROBE_REFUSED : PROBE_NO_ANSWER;
}

static void ask_app(struct app_api *api, struct probe_facts *f)
{
    struct buf CLEANUP(buf_clear) body = BUF_INIT(BODY_MAX);
    struct why why = { "" };
    char path[REPO_MAX + 32];
    FORMAT(path, "/repos/%.*s/installation", STR_ARG(f->repo));
    f->app = asked_of(app_api_get(api, &(struct app_request){ .path = path }, &body, NULL, &why));
    FORMAT(f->app_text, "%s", why.text);
    if (f->app != PROBE_ANSWERED)
        return;
    json_t *root = json_document(buf_str(&body), NULL);
    const char *suspended = json_string_value(json_object_get(root, "suspended_at"));
    FORMAT(f->app_text, "installation %lld",
           (long long)json_integer_value(json_object_get(root, "id")));
    if (suspended) {
        f->app = PROBE_REFUSED;
        FORMAT(f->app_text, "it is suspended since %.40s", suspended);
    }
    json_decref(root);
}

/* The file that listens to more is the one to show. */
static int weight_of(const struct workflow_events *e)
{
    return e->listens * 4 + e->pull_request * 2 + e->push;
}

static void ask_file(struct app_api *api, struct probe_facts *f, const char *name)
{
    struct buf CLEANUP(buf_clear) body = BUF_INIT(FILE_MAX);
    struct buf CLEANUP(buf_clear) path = BUF_INIT(2048);
    struct workflow_events events = { false, false, false };
    struct why why = { "" };
    buf_printf(&path, "/repos/%.*s/contents/" FOLDER "/", STR_ARG(f->repo));
    http_encode(&path, str_of(name));
    const struct app_request request = { .path = path.ptr, .repo = f->repo, .raw = true };
    enum err err = app_api_get(api, &request, &body, NULL, &why);
    if (!err)
        err = workflow_file_read(buf_str(&body), name, &events, &why);
    if (err)
        FORMAT(f->unreadable, "%s", why.text);
    else if (weight_of(&events) > weight_of(&f->events)) {
        f->events = events;
        FORMAT(f->listening, "%s", name);
    }
}

static void ask_workflows(struct app_api *api, struct probe_facts *f)
{
    struct buf CLEANUP(buf_clear) body = BUF_INIT(BODY_MAX);
    struct why why = { "" };
    char path[REPO_MAX + 64];
    int status;
    FORMAT(path, "/repos/%.*s/contents/" FOLDER, STR_ARG(f->repo));
    const struct app_request request = { .path = path, .repo = f->repo };
    enum err err = app_api_get(api, &request, &body, &status, &why);
    f->workflows = asked_of(err);
    if (err == ERR_REFUSE && status != 404) /* not that there is none, but that we may not look */
        f->workflows = PROBE_NOT_ASKED;
    FORMAT(f->workflows_text, "%s", status == 404 ? "there is no folder " FOLDER : why.text);
    if (f->workflows != PROBE_ANSWERED)
        return;
    json_t *root = json_document(buf_str(&body), NULL);
    for (size_t i = 0; i < json_array_size(root) && f->n_workflows < WORKFLOWS; i++) {
        const char *name = json_string_value(json_object_get(json_array_get(root, i), "name"));
        if (!str_ends(str_of(name), ".yml") && !str_ends(str_of(name), ".yaml"))
            continue;
        f->n_workflows++;
        ask_file(api, f, name);
    }
    json_decref(root);
}

static void ask_github(const struct ctl *ctl, struct probe_facts *f)
{
    struct app_api *api;
    struct why why;
    if (app_api_new(&api, ctl, &why)) {
        FORMAT(f->app_text, "not looked at: %s", why.text);
        FORMAT(f->workflows_text, "not looked at: %s", why.text);
        return;
    }
    ask_app(api, f);
    if (f->app == PROBE_ANSWERED)
        ask_workflows(api, f);
    else
        FORMAT(f->workflows_text, "not looked at: only an installed App may");
    app_api_free(api);
}

/* ---- the view -------------------------------------------------------------------------------- */

/* The newest check run of the newest job that has one. *prs: by whom others are demoted. */
static void ask_view(const struct ctl *ctl, struct probe_facts *f, struct demotions **prs)
{
    struct job_list CLEANUP(job_list_clear) jobs = { NULL, 0 };
    const struct allowlist_entry *entry = allowlist_find(f->list, f->repo);
    struct redis *redis = NULL;
    struct why why;
    enum err err = ctl_redis(ctl, &redis, &why);
    f->check = err == ERR_STOP ? PROBE_NOT_ASKED : PROBE_NO_ANSWER;
    if (!err)
        err = prs_demoting_get(redis, prs, &why);
    if (!f->demotion && entry && entry->level == 3)
        f->demotion = demotions_find(*prs, f->repo);
    if (!err)
        err = jobs_of_repo(redis, f->repo, true, JOBS_MAX, &jobs, &why);
    for (size_t i = 0; !err && !*f->check_text && i < jobs.n; i++) {
        const struct result_record *job = &jobs.at[i];
        struct check_list CLEANUP(check_list_clear) list = { NULL, 0 };
        struct buf CLEANUP(buf_clear) name = BUF_INIT(2048);
        const struct check_sent *newest = NULL;
        if (!job->head_sha || !job->workflow_name || !job->job_name)
            continue;
        check_run_name(&name, str_of(job->repo), str_of(job->workflow_name), str_of(job->job_name));
        err = checks_sent_list(redis, str_of(job->head_sha), buf_str(&name), &list, &why);
        for (size_t k = 0; !err && k < list.n; k++)
            if (!newest || list.at[k].sent.id > newest->id)
                newest = &list.at[k].sent;
        if (newest)
            FORMAT(f->check_text, "%.200s, %s, id %lld, on %.12s of #%lld", name.ptr,
                   newest->completed ? "completed" : "open", (long long)newest->id, job->head_sha,
                   (long long)job->pr_number);
    }
    redis_free(redis);
    if (!err)
        f->check = PROBE_ANSWERED;
    else
        FORMAT(f->check_text, "not looked at: %.350s", why.text);
}

/* ---- the topics ----------------------------------------------------------------------------- */

struct looking {
    const struct ctl *ctl;
    struct probe_facts *facts;
};

static bool step_found(void *opaque, const struct record *record)
{
    struct looking *l = opaque;
    struct summary CLEANUP(summary_clear) s = { .repos = NULL };
    if (!str_eq_nocase(headers_get(&record->headers, "repo"), l->facts->repo))
        return true;
    summary_of(&s, &l->ctl->topics, record);
    struct probe_seen *to = s.topic == TOPIC_CALLBACKS ? &l->facts->callback : &l->facts->dispatch;
    /* Skipped and superseded say only that a dispatch was not needed. */
    if (s.at_ms < to->at_ms || !strcmp(s.outcome, "skipped") || !strcmp(s.outcome, "superseded"))
        return true;
    to->at_ms = s.at_ms;
    FORMAT(to->delivery, "%s", s.delivery);
    FORMAT(to->outcome, "%s", s.outcome);
    FORMAT(to->detail, "%s", s.detail);
    return true;
}

static enum err ask_topics(const struct ctl *ctl, struct allowlist_read *past,
                           struct probe_facts *f, struct why *why)
{
    struct scan steps = { .topics = SCAN(TOPIC_DISPATCHES) | SCAN(TOPIC_CALLBACKS),
                          .from_ms = f->since_ms };
    struct looking looking = { ctl, f };
    enum err err = allowlist_read(ctl, past, why);
    if (!err)
        err = scan_all(&steps, ctl, step_found, &looking, why);
    const struct allowlist_entry *entry = allowlist_find(past->list, f->repo);
    f->list = past->list;
    f->source = past->source;
    f->level_since_ms = tenure_since_ms(past->tenure, f->repo);
    f->demotion = entry && entry->level == 3 ? demotions_find(past->demotions, f->repo) : NULL;
    return err;
}

int verb_probe(struct ctl *ctl, const struct args *args)
{
    struct probe_facts f = { .repo = str_of(args->names[0]), .since_ms = args->since_ms };
    struct probe_line lines[PROBE_LINES];
    struct buf CLEANUP(buf_clear) text = BUF_INIT(TEXT_MAX);
    struct allowlist_read past;
    struct demotions *prs = NULL;
    struct why why;
    enum err err = ask_topics(ctl, &past, &f, &why);
    if (err) {
        allowlist_read_clear(&past);
        return ctl_fail(ctl, err, &why);
    }
    ask_github(ctl, &f);
    ask_view(ctl, &f, &prs);
    probe_check(&f, lines);
    (args->json ? probe_json : probe_text)(&f, lines, &text);
    (args->json ? ctl_put : ctl_put_text)(&text);
    demotions_free(prs);
    allowlist_read_clear(&past);
    if (f.app == PROBE_NO_ANSWER || f.workflows == PROBE_NO_ANSWER || f.check == PROBE_NO_ANSWER)
        return CTL_UNREACHABLE;
    return probe_has_todo(lines) ? CTL_PROBLEM : CTL_OK;
}
