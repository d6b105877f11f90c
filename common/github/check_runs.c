#include "check_runs.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/mem.h"
#include "../model/json_member.h"
#include "../model/json_scan.h"
#include "../model/limits.h"

#define CUT_MARK       "\n\n… (cut)"
#define BODY_MAX_BYTES (1u << 20)
/* A page of 100 with summaries of 64 KB each. */
#define PAGE_MAX_BYTES (16u << 20)
#define PAGES_MAX      10  /* GitHub keeps 1,000 check runs of one name in a suite */
#define SUITE_PAGES    100 /* of a whole suite */

/* ---- the request body ---- */

/* As much of the text as GitHub takes; false when some of it had to go. */
static bool cut(struct str *text)
{
    size_t characters = 0, room = 0; /* room: bytes that leave place for the mark */
    for (size_t i = 0; i < text->len; i++) {
        if (((unsigned char)text->ptr[i] & 0xc0) == 0x80)
            continue;
        if (characters == CHECK_RUN_TEXT_MAX - sizeof(CUT_MARK))
            room = i;
        if (characters++ == CHECK_RUN_TEXT_MAX) {
            text->len = room;
            return false;
        }
    }
    return true;
}

static void put_member(struct buf *to, const char *name, struct str text)
{
    if (!text.len)
        return;
    buf_printf(to, "%s\"%s\":", to->len > 1 ? "," : "", name);
    json_quote(to, text);
}

static void put_output(struct buf *to, const struct check_run *run)
{
    struct str summary = run->summary.ptr ? run->summary : STR_LIT("");
    struct buf text;
    if (!run->title.len)
        return;
    buf_init(&text, BODY_MAX_BYTES / 2);
    bool whole = cut(&summary);
    buf_put(&text, summary);
    if (!whole)
        buf_puts(&text, CUT_MARK);
    buf_printf(to, "%s\"output\":{\"title\":", to->len > 1 ? "," : "");
    json_quote(to, run->title);
    buf_puts(to, ",\"summary\":");
    json_quote(to, buf_str(&text));
    buf_putc(to, '}');
    buf_clear(&text);
}

void check_run_body(struct buf *to, const struct check_run *run, bool create)
{
    buf_putc(to, '{');
    if (create) {
        put_member(to, "name", run->name);
        put_member(to, "head_sha", run->head_sha);
    }
    put_member(to, "status", run->status);
    put_member(to, "conclusion", run->conclusion);
    put_member(to, "details_url", run->details_url);
    put_member(to, "external_id", run->external_id);
    put_member(to, "started_at", run->started_at);
    put_member(to, "completed_at", run->completed_at);
    put_output(to, run);
    buf_putc(to, '}');
}

/* ---- create and update ---- */

static enum err write_start(struct github *g, const char *method, struct str repo, const char *path,
                            const struct check_run *run, github_written_fn *done, void *opaque,
                            struct why *why)
{
    struct buf body;
    const struct github_request request = {
        .auth = GITHUB_AS_INSTALLATION,
        .permission = GITHUB_CHECKS_WRITE,
        .method = method,
        .repo = repo,
        .path = path,
        .class = run->class,
        .downstream = run->downstream,
        .pr = run->pr,
        .paid = run->paid,
        .send_by_ms = run->send_by_ms,
    };
    buf_init(&body, BODY_MAX_BYTES);
    check_run_body(&body, run, strcmp(method, "POST") == 0);
    return github_write(g, &request, &body, "check run", done, opaque, why);
}

enum err check_run_create(struct github *g, struct str repo, const struct check_run *run,
                          github_written_fn *done, void *opaque, struct why *why)
{
    char path[REPO_MAX + 32];
    snprintf(path, sizeof(path), "/repos/%.*s/check-runs", STR_ARG(repo));
    return write_start(g, "POST", repo, path, run, done, opaque, why);
}

enum err check_run_update(struct github *g, struct str repo, int64_t id,
                          const struct check_run *run, github_written_fn *done, void *opaque,
                          struct why *why)
{
    char path[REPO_MAX + 64];
    snprintf(path, sizeof(path), "/repos/%.*s/check-runs/%" PRId64, STR_ARG(repo), id);
    return write_start(g, "PATCH", repo, path, run, done, opaque, why);
}

/* ---- find ---- */

struct finding {
    struct github *g;
    char *repo;
    int64_t app_id; /* 0: the App is configured by client id, so GitHub cannot filter for us */
    enum budget_class class;
    const struct check_run *first; /* borrowed; what the first page is to pay for */
    int pages, max_pages;
    bool need_all; /* to miss one of them is a failure */
    check_run_found_fn *found;
    github_written_fn *done;
    void *opaque;
};

static void finding_free(struct finding *f)
{
    free(f->repo);
    free(f);
}

static github_answered_fn page_came;

static enum err page_start(struct finding *f, const char *path, struct why *why)
{
    struct github_request request = {
        .auth = GITHUB_AS_INSTALLATION,
        .permission = GITHUB_CHECKS_WRITE,
        .method = "GET",
        .repo = str_of(f->repo),
        .path = path,
        .max_body_bytes = PAGE_MAX_BYTES,
        .class = f->class,
    };
    if (f->first) {
        request.downstream = f->first->downstream;
        request.pr = f->first->pr;
        request.creates_next = f->first->creates_next;
        f->first = NULL;
    }
    f->pages++;
    return github_start(f->g, &request, page_came, f, why);
}

static bool page_read(struct finding *f, struct str body)
{
    json_t *document = json_document(body, NULL);
    json_t *runs = json_object_get(document, "check_runs"), *run;
    bool good = json_is_array(runs);
    size_t i;
    json_array_foreach(runs, i, run)
    {
        struct check_run_found found = {
            .id = json_integer_value(json_object_get(run, "id")),
            .app_id = json_integer_value(json_object_get(json_object_get(run, "app"), "id")),
            .name = json_member(run, "name"),
            .external_id = json_member(run, "external_id"),
            .status = json_member(run, "status"),
            .conclusion = json_member(run, "conclusion"),
            .summary = json_member(json_object_get(run, "output"), "summary"),
        };
        if (found.id > 0 && (!f->app_id || found.app_id == f->app_id))
            f->found(f->opaque, &found);
    }
    json_decref(document);
    return good;
}

static void page_came(void *opaque, const struct github_answer *answer)
{
    struct finding *f = opaque;
    struct github_answer seen = *answer;
    struct why why;
    if (!seen.err && !page_read(f, seen.body)) {
        seen.err = ERR_UNKNOWN;
        seen.reason =
            "GitHub's answer is not the list of check runs that its documentation promises";
    }
    bool more = !seen.err && seen.next_page.len;
    if (more && f->pages < f->max_pages) {
        char *CLEANUP(mem_free_char) path = str_dup(seen.next_page);
        enum err err = page_start(f, path, &why);
        if (!err)
            return;
        seen = github_unsent(f->g, err, &why);
    } else if (more && f->need_all) {
        seen.err = ERR_REFUSE;
        seen.reason = "there are more check runs than anybody reads";
    }
    f->done(f->opaque, &seen, 0);
    finding_free(f);
}

static struct finding *finding_new(struct github *g, struct str repo, check_run_found_fn *found,
                                   github_written_fn *done, void *opaque)
{
    struct finding *f = mem_alloc(1, sizeof(*f));
    f->g = g;
    f->repo = str_dup(repo);
    f->max_pages = PAGES_MAX;
    f->found = found;
    f->done = done;
    f->opaque = opaque;
    return f;
}

enum err check_run_find(struct github *g, struct str repo, const struct check_run *run,
                        check_run_found_fn *found, github_written_fn *done, void *opaque,
                        struct why *why)
{
    struct buf path;
    struct finding *f = finding_new(g, repo, found, done, opaque);
    f->class = run->class;
    f->first = run;
    if (!str_to_i64(str_of(github_app_id(g)), &f->app_id))
        f->app_id = 0;
    buf_init(&path, 8192);
    buf_printf(&path, "/repos/%.*s/commits/%.*s/check-runs?filter=all&per_page=100&check_name=",
               STR_ARG(repo), STR_ARG(run->head_sha));
    http_encode(&path, run->name);
    if (f->app_id)
        buf_printf(&path, "&app_id=%" PRId64, f->app_id);
    enum err err = page_start(f, buf_str(&path).ptr, why);
    buf_clear(&path);
    if (err)
        finding_free(f);
    return err;
}

enum err check_run_list(struct github *g, struct str repo, uint64_t suite_id,
                        check_run_found_fn *found, github_written_fn *done, void *opaque,
                        struct why *why)
{
    char path[REPO_MAX + 128];
    struct finding *f = finding_new(g, repo, found, done, opaque);
    f->max_pages = SUITE_PAGES;
    f->need_all = true;
    snprintf(path, sizeof(path),
             "/repos/%.*s/check-suites/%" PRIu64 "/check-runs?filter=latest&per_page=100",
             STR_ARG(repo), suite_id);
    enum err err = page_start(f, path, why);
    if (err)
        finding_free(f);
    return err;
}
