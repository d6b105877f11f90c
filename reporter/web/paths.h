/* The paths of the JSON API (json.md beside this file shows each): what a request asks for, and
 * the JSON for it, read from the view. */
#ifndef CRCR_REPORTER_WEB_PATHS_H
#define CRCR_REPORTER_WEB_PATHS_H

#include "../../common/base/buf.h"
#include "../../common/base/headers.h"
#include "../reporter.h"
#include "pipeline.h"

/* What a rendering reads from. One thread's. */
struct web_view {
    const struct reporter *reporter;
    struct redis *redis;
    struct pipeline *pipeline;
};

#define PATH_PARAMS_MAX 3

struct path_ask;

/* One path. What follows in its JSON from the time of the rendering alone changes its ETag each
 * time, and so wakes all who wait for a change: say when something is, not how long ago. */
struct api_path {
    const char *name;                    /* in the metric */
    const char *path;                    /* one star in it stands for the id */
    const char *params[PATH_PARAMS_MAX]; /* of the query; others are not looked at */
    bool (*valid)(struct str id);        /* NULL: the path has no id */
    /* What is wrong with the parameters, for the answer 400; NULL: nothing, or takes any. */
    const char *(*fault)(const struct path_ask *ask);
    /* Appends the answer. *known: something is there; else it is 404, an image as it is. */
    enum err (*put)(const struct web_view *w, const struct path_ask *ask, struct buf *to,
                    bool *known, struct why *why);
    const char *type; /* NULL: JSON */
    bool no_view;     /* it is of the relay itself: the view may be unavailable */
};
#define SVG_TYPE "image/svg+xml"
extern const struct api_path api_paths[];
extern const size_t api_paths_n;

/* What a request asks for. Two that ask for the same have the same key. */
struct path_ask {
    const struct api_path *path;
    struct str key;                     /* malloc'ed; the rest is borrowed from it */
    struct str id;                      /* of the path */
    struct str params[PATH_PARAMS_MAX]; /* in the order of path->params; empty: not given */
};

/* path and query are decoded. False: there is no such path, or its id is malformed, or a
 * parameter holds a line break, or all have more than 1 KiB; *ret is untouched. PURE, as the next.
 */
bool path_ask_init(struct path_ask *ret, struct str path, const struct headers *query) MUST_CHECK;
/* The same from "path?query" as in a URL. */
bool path_ask_parse(struct path_ask *ret, struct str target) MUST_CHECK;
/* Takes an ask that is all 0, too. */
void path_ask_clear(struct path_ask *ask);

/* The answer: 200, or 400, 404 and 503 with {"detail": "…"}; to holds it. 503 with why: the view
 * could not be read. */
int path_render(const struct web_view *w, const struct path_ask *ask, struct buf *to,
                struct why *why);

#endif
