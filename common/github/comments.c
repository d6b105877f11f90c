#include "comments.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "../base/buf.h"
#include "../base/mem.h"
#include "../model/json_member.h"
#include "../model/json_scan.h"
#include "../model/limits.h"

/* A page of 100 with texts of 64 KB each, some of it escaped. */
#define PAGE_MAX_BYTES (16u << 20)
#define PAGES_MAX      30
#define BODY_MAX_BYTES (1u << 20)

/* ---- find ---- */

struct finding {
    struct github *g;
    char *repo, *marker;
    int pages;
    comment_found_fn *done;
    void *opaque;
};

static void finding_free(struct finding *f)
{
    free(f->repo);
    free(f->marker);
    free(f);
}

static bool is_ours(const json_t *comment, const char *app_id)
{
    const json_t *app = json_object_get(comment, "performed_via_github_app");
    int64_t number;
    if (!json_is_object(app))
        return false;
    if (str_to_i64(str_of(app_id), &number))
        return json_integer_value(json_object_get(app, "id")) == number;
    return str_is(json_member(app, "client_id"), app_id);
}

bool comments_page_read(struct str page, const char *app_id, struct str marker, int64_t *id,
                        char **body)
{
    json_t *document = json_document(page, NULL), *comment;
    char *prefix = str_dup(marker);
    bool good = json_is_array(document);
    size_t i;
    *id = 0;
    json_array_foreach(document, i, comment)
    {
        struct str text = str_trim(json_member(comment, "body"));
        int64_t number = json_integer_value(json_object_get(comment, "id"));
        if (*id || number <= 0 || !str_starts(text, prefix) || !is_ours(comment, app_id))
            continue;
        *id = number;
        *body = str_dup(text);
    }
    free(prefix);
    json_decref(document);
    return good;
}

static github_answered_fn page_came;

static enum err page_start(struct finding *f, const char *path, struct why *why)
{
    struct github_request request = {
        .auth = GITHUB_AS_INSTALLATION,
        .permission = GITHUB_PULLS_WRITE,
        .method = "GET",
        .repo = str_of(f->repo),
        .path = path,
        .max_body_bytes = PAGE_MAX_BYTES,
        .class = BUDGET_REST,
    };
    f->pages++;
    return github_start(f->g, &request, page_came, f, why);
}

static void page_came(void *opaque, const struct github_answer *answer)
{
    struct finding *f = opaque;
    struct github_answer seen = *answer;
    struct comment_found found = { 0 };
    char *CLEANUP(mem_free_char) body = NULL;
    struct why why;
    if (!seen.err &&
        !comments_page_read(seen.body, github_app_id(f->g), str_of(f->marker), &found.id, &body)) {
        seen.err = ERR_UNKNOWN;
        seen.reason = "GitHub's answer is not the list of comments that its documentation promises";
    }
    if (!seen.err && !found.id && seen.next_page.len && f->pages < PAGES_MAX) {
        char *CLEANUP(mem_free_char) path = str_dup(seen.next_page);
        enum err err = page_start(f, path, &why);
        if (!err)
            return;
        seen = github_unsent(f->g, err, &why);
    }
    found.body = str_of(body);
    f->done(f->opaque, &seen, &found);
    finding_free(f);
}

enum err comment_find(struct github *g, struct str repo, int64_t pr, struct str marker,
                      comment_found_fn *done, void *opaque, struct why *why)
{
    char path[REPO_MAX + 80];
    struct finding *f = mem_alloc(1, sizeof(*f));
    f->g = g;
    f->repo = str_dup(repo);
    f->marker = str_dup(marker);
    f->done = done;
    f->opaque = opaque;
    snprintf(path, sizeof(path), "/repos/%.*s/issues/%" PRId64 "/comments?per_page=100",
             STR_ARG(repo), pr);
    enum err err = page_start(f, path, why);
    if (err)
        finding_free(f);
    return err;
}

/* ---- create and edit ---- */

static enum err write_start(struct github *g, const char *method, struct str repo, const char *path,
                            struct str text, github_written_fn *done, void *opaque, struct why *why)
{
    struct buf body;
    const struct github_request request = {
        .auth = GITHUB_AS_INSTALLATION,
        .permission = GITHUB_PULLS_WRITE,
        .method = method,
        .repo = repo,
        .path = path,
        .class = BUDGET_REST,
    };
    buf_init(&body, BODY_MAX_BYTES);
    buf_puts(&body, "{\"body\":");
    json_quote(&body, text);
    buf_putc(&body, '}');
    return github_write(g, &request, &body, "comment", done, opaque, why);
}

enum err comment_create(struct github *g, struct str repo, int64_t pr, struct str body,
                        github_written_fn *done, void *opaque, struct why *why)
{
    char path[REPO_MAX + 64];
    snprintf(path, sizeof(path), "/repos/%.*s/issues/%" PRId64 "/comments", STR_ARG(repo), pr);
    return write_start(g, "POST", repo, path, body, done, opaque, why);
}

enum err comment_edit(struct github *g, struct str repo, int64_t id, struct str body,
                      github_written_fn *done, void *opaque, struct why *why)
{
    char path[REPO_MAX + 64];
    snprintf(path, sizeof(path), "/repos/%.*s/issues/comments/%" PRId64, STR_ARG(repo), id);
    return write_start(g, "PATCH", repo, path, body, done, opaque, why);
}
