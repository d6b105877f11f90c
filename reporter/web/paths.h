/* The paths of the pages and of the JSON API (json.md beside this file shows each answer): what a
 * request asks for, and the answer, read from the view. */
#ifndef CRCR_REPORTER_WEB_PATHS_H
#define CRCR_REPORTER_WEB_PATHS_H

#include "../../common/base/buf.h"
#include "../../common/base/headers.h"
#include "../reporter.h"
#include "lists.h"
#include "pipeline.h"

/* What a rendering reads. For one thread. */
struct web_view {
    const struct reporter *reporter;
    struct redis *redis;
    struct pipeline *pipeline;
    struct lists *lists;
};

#define PATH_PARAMS_MAX 5

/* What a request asks for. Equal requests have equal keys. */
struct path_ask {
    const struct api_path *path;
    struct str key;                     /* malloc'ed; the rest is borrowed from it */
    struct str id;                      /* of the path */
    struct str params[PATH_PARAMS_MAX]; /* in the order of path->params */
    const char *fault; /* why a parameter is not accepted: answer 400, there is no key; else NULL */
};

/* Appends the answer to an ask. *known false: 404 (an image is sent all the same). An answer must
 * not depend on the time of the rendering alone: its ETag would change each time and wake all who
 * wait for a change. Say when something is, not how long ago. */
typedef enum err path_put_fn(const struct web_view *w, const struct path_ask *ask, struct buf *to,
                             bool *known, struct why *why);
/* Each in the file of its subject: summary.c, trends.c, repo_page.c, since_page.c,
 * level.c, level_status.c, pr_list.c, delivery_page.c. */
path_put_fn summary_page, trends_page, repo_trends_page, repo_page, badge_page, since_page,
    level_page, level_status_page, prs_page, pr_page, delivery_page;

/* A parameter of the query. Values are checked before anything is read. */
struct api_param {
    const char *name;
    /* The accepted values, separated by bars; the first is the default; '#' is a number. NULL: any
     * text, in any case. */
    const char *accepted;
    const char *fault; /* the error text */
};

/* One path of the API. */
struct api_path {
    const char *name;                         /* in the metric */
    const char *path;                         /* one star in it stands for the id */
    struct api_param params[PATH_PARAMS_MAX]; /* others are ignored */
    bool (*valid)(struct str id);             /* NULL: the path has no id */
    path_put_fn *put;
    const char *type; /* NULL: JSON */
    bool no_view;     /* about the relay itself: it works without the view */
    bool with_list;   /* 503 while the allowlist is being read */
};
/* Public error texts; the log has the cause. */
#define VIEW_UNAVAILABLE   "the view is unavailable"
#define VIEW_REBUILT       "the view is being rebuilt"
#define TOPICS_UNAVAILABLE "the topics are unavailable"
#define PATH_UNAVAILABLE   VIEW_UNAVAILABLE ", try again"
#define SVG_TYPE           "image/svg+xml"

/* path and query are decoded. False: no such path, a malformed id, a parameter with a line break,
 * or more than 1 KiB of parameters; *ret is untouched. True with ret->fault: a parameter is not
 * accepted. PURE, as path_ask_parse. */
bool path_ask_init(struct path_ask *ret, struct str path, const struct headers *query) MUST_CHECK;
/* The same from "path?query" as in a URL. */
bool path_ask_parse(struct path_ask *ret, struct str target) MUST_CHECK;
/* Takes a zeroed ask, too. */
void path_ask_clear(struct path_ask *ask);
/* Whether the path is a page's; main.js decides which. PURE. */
bool path_is_page(struct str path);
/* The number of a pull request; 0: id is none. PURE. */
int64_t pr_number(struct str id);
/* An accepted number; 0: not given. PURE. */
int64_t path_number(struct str param);

/* Renders the answer into `to`: 200; or 404, 503 with {"detail": "…"}. why: on 503, why the view
 * could not be read. */
int path_render(const struct web_view *w, const struct path_ask *ask, struct buf *to,
                struct why *why);

#endif
