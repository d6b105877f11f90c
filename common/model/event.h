/* An upstream event: a webhook that was accepted, and what its Kafka headers say. After ingest the
 * headers are the only identity; the body is looked into only for facts that are not in them. PURE.
 */
#ifndef CRCR_MODEL_EVENT_H
#define CRCR_MODEL_EVENT_H

#include "../base/buf.h"
#include "../base/headers.h"
#include "limits.h"

enum event_kind {
    EVENT_OTHER,
    EVENT_PULL_REQUEST,
    EVENT_PUSH,
    EVENT_CHECK_RUN,
    EVENT_CHECK_SUITE,
    EVENT_PING
};
/* By the names that X-GitHub-Event uses; EVENT_OTHER for those that are none of ours. */
enum event_kind event_kind_of(struct str x_github_event);
const char *event_kind_name(enum event_kind kind);

/* What one scan of a webhook body finds. Absent text is "", absent numbers are 0. */
#define EVENT_MAX_LABELS 100
struct event_facts {
    char repo[REPO_MAX + 1]; /* repository.full_name; a ping of an App has none */
    char default_branch[256];
    char action[64];
    int64_t pr;                        /* pull_request.number; ciflow tag push: from the ref */
    char head_sha[SHA_MAX + 1];        /* pull_request.head.sha; push: after; check_*: head_sha */
    char updated_at[40];               /* pull_request.updated_at */
    char title[PR_TITLE_MAX + 1];      /* pull_request.title */
    char author[PR_AUTHOR_MAX + 1];    /* pull_request.user.login */
    char ref[512];                     /* push */
    char head_ref[256];                /* pull_request.head.ref: its branch */
    char head_repo[REPO_MAX + 1];      /* pull_request.head.repo.full_name: whose branch */
    char state[16];                    /* pull_request.state */
    bool deleted;                      /* push */
    char label[256];                   /* label.name of labeled, unlabeled */
    char labels[EVENT_MAX_LABELS][64]; /* pull_request.labels[].name; GitHub: 50 characters */
    size_t n_labels;
    int64_t app_id; /* check_run.app.id, check_suite.app.id */
    int64_t check_run_id, check_suite_id;
    char check_name[1024]; /* check_run.name */
    char external_id[256]; /* check_run.external_id */
    bool has_nul;          /* anywhere in the body (json_scan.h) */
};

/* One pass. ERR_REFUSE: not a JSON object. A field of the wrong type or too long counts as absent.
 */
enum err event_read(enum event_kind kind, struct str body, struct event_facts *ret,
                    struct why *why) MUST_CHECK;
/* ERR_REFUSE, naming the field: one that this kind needs is absent, or malformed. */
enum err event_check(enum event_kind kind, const struct event_facts *facts,
                     struct why *why) MUST_CHECK;
/* event_read, then event_check. */
enum err event_scan(enum event_kind kind, struct str body, struct event_facts *ret,
                    struct why *why) MUST_CHECK;
/* True when a push changed that path (commits[].added, modified, removed; head_commit too). */
bool event_push_touches(struct str body, const char *path);

/* The key in the events topic: <repo>#<pr>, else <repo>@<ref or commit>. */
void event_key(struct buf *to, enum event_kind kind, const struct event_facts *facts);

/* The headers of a record in the events topic; text is borrowed from the record. */
struct event {
    enum event_kind kind;
    struct str action, delivery, head_sha, source;
    int64_t pr, received_ms;
    struct str again; /* id of a `crcrctl replay --again`: what was sent before, and how old the
                         event is, does not count. Absent otherwise. */
};
/* ERR_REFUSE (poison) when a header is missing or malformed. */
enum err event_from_headers(struct event *ret, const struct headers *headers,
                            struct why *why) MUST_CHECK;
/* Appends the headers of an event; strings stay borrowed. */
void event_to_headers(const struct event *event, struct headers *to);

#endif
