/* What keeps a repository's results from the HUD or the pull request: facts in, one line for each
 * check out, with what to do next (deploy/downstream/README.md). PURE. */
#ifndef CRCR_CTL_PROBE_H
#define CRCR_CTL_PROBE_H

#include "../../common/base/buf.h"
#include "../../common/model/allowlist.h"
#include "../../common/model/demotions.h"

/* Whether a GitHub Actions workflow starts on the relay's repository_dispatch
 * (https://docs.github.com/en/actions/reference/events-that-trigger-workflows#repository_dispatch).
 */
struct workflow_events {
    bool listens;      /* to repository_dispatch at all */
    bool pull_request; /* to that event type; a workflow without types takes all */
    bool push;
};

/* name: for the error. ERR_REFUSE: not YAML, or something that our reader does not take (anchors,
 * tags). */
enum err workflow_file_read(struct str yaml, const char *name, struct workflow_events *ret,
                            struct why *why) MUST_CHECK;

/* How a question was answered. */
enum probe_asked {
    PROBE_NOT_ASKED, /* no credentials, or not needed; text says why */
    PROBE_NO_ANSWER,
    PROBE_REFUSED, /* GitHub said no: text */
    PROBE_ANSWERED,
};

#define PROBE_TEXT 640 /* the text of a struct why, and some words */

/* The newest record of a kind in the topics. */
struct probe_seen {
    int64_t at_ms; /* 0: none */
    char delivery[DELIVERY_MAX + 1];
    char outcome[32];
    char detail[PROBE_TEXT];
};

struct probe_facts {
    struct str repo;
    int64_t since_ms; /* how far back the topics were read */

    const struct allowlist *list;    /* NULL: none has been published */
    const char *source;              /* of the list */
    int64_t level_since_ms;          /* -1 unknown */
    const struct demotion *demotion; /* or NULL */

    enum probe_asked app;
    char app_text[PROBE_TEXT];

    enum probe_asked workflows;
    char workflows_text[PROBE_TEXT];
    size_t n_workflows;
    char listening[PROBE_TEXT];    /* the file that listens to most; "": none does */
    struct workflow_events events; /* of it */
    char unreadable[PROBE_TEXT];   /* why one of them could not be read, or "" */

    struct probe_seen dispatch, callback;

    enum probe_asked check;
    char check_text[PROBE_TEXT]; /* ANSWERED: the check run, "" when there is none */
};

/* UNKNOWN: could not be looked at. UNDECIDED: it was, and whether it worked is not known (yet). */
enum probe_state { PROBE_OK, PROBE_TODO, PROBE_UNKNOWN, PROBE_NOT_EXPECTED, PROBE_UNDECIDED };

struct probe_line {
    const char *name;
    enum probe_state state;
    char text[2 * PROBE_TEXT];
    char todo[2 * PROBE_TEXT]; /* "" when there is nothing to do */
};
#define PROBE_LINES 6

void probe_check(const struct probe_facts *facts, struct probe_line to[PROBE_LINES]);
/* Whether a line has something to do. */
bool probe_has_todo(const struct probe_line lines[PROBE_LINES]);
void probe_text(const struct probe_facts *facts, const struct probe_line lines[PROBE_LINES],
                struct buf *to);
void probe_json(const struct probe_facts *facts, const struct probe_line lines[PROBE_LINES],
                struct buf *to);

#endif
