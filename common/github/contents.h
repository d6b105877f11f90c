/* Where the allowlist comes from: a file in a repository at GitHub (read through the contents API
 * with the App's rights), any other URL, or a local file. */
#ifndef CRCR_GITHUB_CONTENTS_H
#define CRCR_GITHUB_CONTENTS_H

#include "../model/limits.h"
#include "github.h"

enum content_kind { CONTENT_GITHUB, CONTENT_URL, CONTENT_FILE };

struct content_source {
    enum content_kind kind;
    char text[URL_MAX + 1];  /* as configured: the URL or the path */
    char shown[URL_MAX + 1]; /* the same as it may be logged and stored (url_shown) */
    char repo[REPO_MAX + 1]; /* GITHUB: owner/repo */
    char ref[256];           /* GITHUB: branch, tag or commit; a branch with a slash looks like
                                a folder, so it is one path segment */
    char path[1024];         /* GITHUB: as in the URL, percent-encoded */
};

/* https://github.com/<owner>/<repo>/blob/<ref>/<path> (also /raw/), https://…, http:// to loopback,
 * file:///path, /path or ./path. ERR_REFUSE says what is accepted. PURE. */
enum err content_source_parse(struct content_source *ret, struct str text,
                              struct why *why) MUST_CHECK;
/* The request path at the API: /repos/o/r/contents/<path>?ref=<ref>. PURE. */
struct buf;
void content_api_path(struct buf *to, const struct content_source *source);
/* The last part of the path: for "allowlist.yml:12:5: …". Borrowed. PURE. */
const char *content_name(const struct content_source *source);

/* err OK with unchanged set: the ETag still holds and body is empty. All borrowed during the
 * callback. */
struct content_answer {
    enum err err;
    bool unchanged;
    struct str body;
    struct str etag;
    const char *reason; /* err != OK */
};
typedef void content_fetched_fn(void *opaque, const struct content_answer *answer);

/* done is called once when this returns OK: from http_client_poll, or, for a file, before this
 * returns. g may be NULL unless kind is GITHUB; client unless it is URL. */
enum err content_fetch(const struct content_source *source, struct github *g,
                       struct http_client *client, struct str etag, size_t max_bytes,
                       content_fetched_fn *done, void *opaque, struct why *why) MUST_CHECK;

#endif
