/* The paths of the pages and of the JSON API (json.md beside this file shows each answer): what a
 * request asks for, and the answer, read from the view. */
#ifndef CRCR_REPORTER_WEB_PATHS_H
#define CRCR_REPORTER_WEB_PATHS_H

#include "../../common/base/buf.h"
#include "../../common/base/headers.h"
#include "../reporter.h"
#include "lists.h"
#include "pipeline.h"

/* What a rendering reads from. One thread's. */
struct web_view {
    const struct reporter *reporter;
    struct redis *redis;
    struct pipeline *pipeline;
    struct lists *lists;
};

#define PATH_PARAMS_MAX 3

/* What a request asks for. Two that ask for the same have the same key. */
struct path_ask {
    const struct api_path *path;
    struct str key;                     /* malloc'ed; the rest is borrowed from it */
    struct str id;                      /* of the path */
    struct str params[PATH_PARAMS_MAX]; /* in the order of path->params */
    const char *fault; /* a parameter is not accepted: for 400, and there is no key; else NULL */
};

/* Appends the answer to an ask. *known: something is there; else it is 404, an image as it is. What
 * follows from the time of the rendering alone changes the answer's ETag each time, and so wakes
 * all who wait for a change: say when something is, not how long ago. */
typedef enum err path_put_fn(const struct web_view *w, const struct path_ask *ask, struct buf *to,
                             bool *known, struct why *why);
/* Each in the file of its subject: summary.c, trends.c, repo_page.c, since_page.c, level.c,
 * pr_list.c, delivery_page.c. */
path_put_fn summary_page, trends_page, repo_trends_page, repo_page, badge_page, since_page,
    level_page, level_status_page, prs_page, pr_page, delivery_page;

/* A parameter of the query. What is not accepted is refused before anything is read. */
struct api_param {
    const char *name;
    /* What is accepted, with bars between: the first stands for none given; '#' is a number. NULL:
     * any text, of which the case says nothing. */
    const char *accepted;
    const char *fault; /* says so */
};

/* One path of the API. */
struct api_path {
    const char *name;                         /* in the metric */
    const char *path;                         /* one star in it stands for the id */
    struct api_param params[PATH_PARAMS_MAX]; /* others are not looked at */
    bool (*valid)(struct str id);             /* NULL: the path has no id */
    path_put_fn *put;
    const char *type; /* NULL: JSON */
    bool no_view;     /* it is of the relay itself: the view may be unavailable */
    bool with_list;   /* 503 while the allowlist is being read */
};
/* What strangers read where Redis or Kafka does not answer; the log has what and why. */
#define VIEW_UNAVAILABLE   "the view is unavailable"
#define TOPICS_UNAVAILABLE "the topics are unavailable"
#define PATH_UNAVAILABLE   VIEW_UNAVAILABLE ", try again"
#define SVG_TYPE           "image/svg+xml"

/* path and query are decoded. False: there is no such path, or its id is malformed, or a
 * parameter holds a line break, or all have more than 1 KiB; *ret is untouched. True with
 * ret->fault: a parameter is not accepted. PURE, as the next. */
bool path_ask_init(struct path_ask *ret, struct str path, const struct headers *query) MUST_CHECK;
/* The same from "path?query" as in a URL. */
bool path_ask_parse(struct path_ask *ret, struct str target) MUST_CHECK;
/* Takes an ask that is all 0, too. */
void path_ask_clear(struct path_ask *ask);
/* Whether there is a page at that path; main.js says which. PURE. */
bool path_is_page(struct str path);
/* The number of a pull request; 0: it is none. PURE. */
int64_t pr_number(struct str id);
/* A parameter that was accepted as a number; 0: not given. PURE. */
int64_t path_number(struct str param);

/* The answer: 200, or 404 and 503 with {"detail": "…"}; to holds it. 503 with why: the view
 * could not be read. */
int path_render(const struct web_view *w, const struct path_ask *ask, struct buf *to,
                struct why *why);

#endif
