#include "contents.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/buf.h"
#include "../base/mem.h"
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
    if (str_starts(text, github)) {
        s.kind = CONTENT_GITHUB;
        if (!parse_blob(str_from(text, sizeof(github) - 1), &s))
            return why_set(why, ERR_REFUSE,
                           "\"%.300s\": a file at GitHub is "
                           "https://github.com/<owner>/<repo>/blob/<ref>/<path>",
                           s.text);
    } else if (str_starts(text, "file://")) {
        s.kind = CONTENT_FILE;
        memmove(s.text, s.text + 7, strlen(s.text + 7) + 1);
    } else if (str_find_str(text, STR_LIT("://")) < 0) {
        s.kind = CONTENT_FILE;
    } else {
        enum err err = http_url_check(s.text, false, why);
        if (err)
            return err;
    }
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
    const char *path = source->kind == CONTENT_GITHUB ? source->path : source->text;
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

static enum err read_file(const char *path, size_t max_bytes, struct buf *to, struct why *why)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return why_set(why, ERR_RETRY, "%.300s: %s", path, strerror(errno));
    char block[16384];
    ssize_t n;
    buf_init(to, max_bytes);
    do {
        n = read(fd, block, sizeof(block));
        if (n > 0)
            buf_put(to, (struct str){ block, (size_t)n });
    } while (n > 0 && !buf_full(to));
    int error = errno;
    close(fd);
    if (n >= 0 && !buf_full(to))
        return OK;
    bool full = buf_full(to);
    buf_clear(to);
    if (full)
        return why_set(why, ERR_REFUSE, "%.300s has more than %zu bytes", path, max_bytes);
    return why_set(why, ERR_RETRY, "%.300s: %s", path, strerror(error));
}

static void file_fetch(const char *path, size_t max_bytes, struct fetch *f)
{
    struct buf text = { 0 };
    struct why why;
    struct content_answer answer = { .err = read_file(path, max_bytes, &text, &why) };
    if (answer.err)
        answer.reason = why.text;
    else
        answer.body = buf_str(&text);
    fetch_finish(f, &answer);
    if (!answer.err)
        buf_clear(&text);
}

static enum err github_fetch(const struct content_source *source, struct github *g, struct str etag,
                             size_t max_bytes, struct fetch *f, struct why *why)
{
    struct buf path;
    buf_init(&path, 4096);
    content_api_path(&path, source);
    struct github_request request = {
        .auth = GITHUB_AS_INSTALLATION,
        .method = "GET",
        .repo = str_of(source->repo),
        .path = buf_str(&path).ptr,
        .accept = MIME_RAW,
        .etag = etag,
        .max_body_bytes = max_bytes,
    };
    enum err err = github_start(g, &request, github_answered, f, why);
    buf_clear(&path);
    return err;
}

static enum err url_fetch(const struct content_source *source, struct http_client *client,
                          struct str etag, size_t max_bytes, struct fetch *f, struct why *why)
{
    struct headers headers;
    headers_init(&headers);
    if (etag.len)
        headers_put(&headers, "If-None-Match", etag);
    struct http_request request = {
        .method = "GET", .url = source->text, .headers = &headers, .max_body_bytes = max_bytes
    };
    return http_client_start(client, &request, url_answered, f, why);
}

enum err content_fetch(const struct content_source *source, struct github *g,
                       struct http_client *client, struct str etag, size_t max_bytes,
                       content_fetched_fn *done, void *opaque, struct why *why)
{
    enum err err = OK;
    struct fetch *f = mem_alloc(1, sizeof(*f));
    f->done = done;
    f->opaque = opaque;
    if (source->kind == CONTENT_FILE)
        file_fetch(source->text, max_bytes, f);
    else if (source->kind == CONTENT_GITHUB)
        err = github_fetch(source, g, etag, max_bytes, f, why);
    else
        err = url_fetch(source, client, etag, max_bytes, f, why);
    if (err)
        free(f);
    return err;
}
