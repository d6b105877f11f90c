/* Comments on a pull request of the upstream repository, as our App
 * (https://docs.github.com/en/rest/issues/comments). Asynchronous as github_start: limits,
 * redirects and tokens are handled there. */
#ifndef CRCR_GITHUB_COMMENTS_H
#define CRCR_GITHUB_COMMENTS_H

#include "github.h"

#define COMMENT_TEXT_MAX 65536 /* characters */

/* A comment that was found; id 0: there is none. body is borrowed during the callback. */
struct comment_found {
    int64_t id;
    struct str body;
};
/* Called once, from http_client_poll. found->id is 0 unless answer->err is OK. */
typedef void comment_found_fn(void *opaque, const struct github_answer *answer,
                              const struct comment_found *found);
/* The oldest comment of our own App on that pull request whose text begins with the marker.
 * Whose it is, is in performed_via_github_app: a marker alone can be written by anyone.
 * GET /repos/{repo}/issues/{pr}/comments, page after page, at most 3,000 comments. */
enum err comment_find(struct github *g, struct str repo, int64_t pr, struct str marker,
                      comment_found_fn *done, void *opaque, struct why *why) MUST_CHECK;

/* POST /repos/{repo}/issues/{pr}/comments. body: Markdown, at most COMMENT_TEXT_MAX characters. */
enum err comment_create(struct github *g, struct str repo, int64_t pr, struct str body,
                        github_written_fn *done, void *opaque, struct why *why) MUST_CHECK;
/* PATCH /repos/{repo}/issues/comments/{id}. */
enum err comment_edit(struct github *g, struct str repo, int64_t id, struct str body,
                      github_written_fn *done, void *opaque, struct why *why) MUST_CHECK;

/* PURE: looks through one page of comments. False: it is no page of comments. Otherwise *id is that
 * of the first one that is ours, with its text in *body (the caller's), or 0. app_id is as
 * configured: a number or a client id. */
bool comments_page_read(struct str page, const char *app_id, struct str marker, int64_t *id,
                        char **body);

#endif
