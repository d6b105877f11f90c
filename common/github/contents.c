#include "contents.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/file.h"
#include "../base/mem.h"
#include "../base/url.h"
#include "../model/ids.h"

#define MIME_RAW "application/vnd.github.raw+json"

/* ---- what is meant ---- */

/* owner/repo/blob/ref/path…, already without "https://github.com/". */
static bool parse_blob(struct str rest, struct content_source *s)
{
    struct str owner, repo, blob, ref;
    ptrdiff_t end = str_find(rest, '?');
    if (end >= 0)
        rest.len = (size_t)end;
    end = str_find(rest, '#');
    if (end >= 0)
        rest.len = (size_t)end;
    if (!str_split(&rest, '/', &owner) || !str_split(&rest, '/', &repo) ||
        !str_split(&rest, '/', &blob) || !str_split(&rest, '/', &ref) || !rest.len)
        return false;
    if (!str_is(blob, "blob") && !str_is(blob, "raw"))
        return false;
    if (snprintf(s->repo, sizeof(s->repo), "%.*s/%.*s", STR_ARG(owner), STR_ARG(repo)) >=
        (int)sizeof(s->repo))
        return false;
    return repo_valid(str_of(s->repo)) && ref.len && str_copy(s->ref, sizeof(s->ref), ref) &&
           str_copy(s->path, sizeof(s->path), rest);
}

enum err content_source_parse(struct content_source *ret, struct str text, struct why *why)
{
    static const char github[] = "https://github.com/";
    struct content_source s = { .kind = CONTENT_URL };
    if (!text.len || !str_copy(s.text, sizeof(s.text), text) || strlen(s.text) != text.len)
        return why_set(why, ERR_REFUSE, "a source is a URL or a path of 1 to %d bytes", URL_MAX);
    url_shown(s.shown, sizeof(s.shown), text);
    if (str_starts(text, github)) {
        s.kind = CONTENT_GITHUB;
        if (!parse_blob(str_from(text, sizeof(github) - 1), &s))
            return why_set(why, ERR_REFUSE,
                           "\"%.300s\": a file at GitHub is "
                           "https://github.com/<owner>/<repo>/blob/<ref>/<path>",
                           s.shown);
    } else if (str_starts(text, "file://")) {
        s.kind = CONTENT_FILE;
        memmove(s.text, s.text + 7, strlen(s.text + 7) + 1);
    } else if (str_find_str(text, STR_LIT("://")) < 0) {
        s.kind = CONTENT_FILE;
    } else {
        enum err err = http_url_check(s.text, true, why); /* as configuration allows it */
        if (err)
            return err;
    }
    if (s.kind == CONTENT_FILE) /* where a ? is a character as others */
        memcpy(s.shown, s.text, sizeof(s.shown));
    *ret = s;
    return OK;
}

void content_api_path(struct buf *to, const struct content_source *source)
{
    buf_printf(to, "/repos/%s/contents/%s?ref=", source->repo, source->path);
    http_encode(to, str_of(source->ref));
}

const char *content_name(const struct content_source *source)
{
    const char *path = source->kind == CONTENT_GITHUB ? source->path : source->shown;
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* ---- fetching ---- */

struct fetch {
    content_fetched_fn *done;
    void *opaque;
};

static void fetch_finish(struct fetch *f, const struct content_answer *answer)
{
    f->done(f->opaque, answer);
    free(f);
}

static void github_answered(void *opaque, const struct github_answer *github)
{
    struct content_answer answer = {
        .err = github->err,
        .unchanged = github->status == 304,
        .body = github->body,
        .etag = github->etag,
        .reason = github->reason,
    };
    fetch_finish(opaque, &answer);
}

static void url_answered(void *opaque, const struct http_answer *http)
{
    char reason[64];
    struct content_answer answer = { .err = http->err, .reason = http->reason };
    if (!http->err && (http->status == 200 || http->status == 304)) {
        answer.unchanged = http->status == 304;
        answer.body = http->body;
        answer.etag = headers_get(http->headers, "etag");
    } else if (!http->err) {
        snprintf(reason, sizeof(reason), "the server answered %d", http->status);
        answer.err = http->status >= 500 || http->status == 429 ? ERR_RETRY : ERR_REFUSE;
        answer.reason = reason;
    }
    fetch_finish(opaque, &answer);
}

enum err content_fetch(const struct content_source *source, struct github *g,
                       struct http_client *client, struct str etag, size_t max_bytes,
                       content_fetched_fn *done, void *opaque, struct why *why)
{
    if (source->kind == CONTENT_FILE) {
        struct buf CLEANUP(buf_clear) text = BUF_INIT(max_bytes);
        struct why fault;
        /* A FIFO that nobody writes to does not hold us. */
        int fd = open(source->text, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        enum err err = file_read(&text, fd, &fault);
        if (err)
            err = why_prefix(&fault, err, "%.300s", source->text);
        const struct content_answer answer = { .err = err,
                                               .body = err ? STR_NONE : buf_str(&text),
                                               .reason = err ? fault.text : NULL };
        done(opaque, &answer);
        return OK;
    }
    enum err err;
    struct fetch *f = mem_alloc(1, sizeof(*f));
    *f = (struct fetch){ done, opaque };
    if (source->kind == CONTENT_GITHUB) {
        struct buf CLEANUP(buf_clear) path;
        buf_init(&path, 4096);
        content_api_path(&path, source);
        const struct github_request request = {
            .auth = GITHUB_AS_INSTALLATION,
            .permission = GITHUB_CONTENTS_READ,
            .method = "GET",
            .repo = str_of(source->repo),
            .path = buf_str(&path).ptr,
            .accept = MIME_RAW,
            .etag = etag,
            .max_body_bytes = max_bytes,
        };
        err = github_start(g, &request, github_answered, f, why);
    } else {
        struct headers headers;
        headers_init(&headers);
        if (etag.len)
            headers_put(&headers, "If-None-Match", etag);
        const struct http_request request = {
            .method = "GET", .url = source->text, .headers = &headers, .max_body_bytes = max_bytes
        };
        err = http_client_start(client, &request, url_answered, f, why);
    }
    if (err)
        free(f);
    return err;
}
