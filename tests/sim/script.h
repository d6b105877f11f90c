/* Rules that change how the simulator answers: which requests they are for, and what happens to
 * them instead of, or besides, the usual. README.md documents the fields. PURE. */
#ifndef CRCR_SIM_SCRIPT_H
#define CRCR_SIM_SCRIPT_H

#include "../../common/base/err.h"
#include "../../common/base/str.h"

typedef struct json_t json_t;
struct script;

/* What a rule does. Borrowed from the script until it is changed. */
struct rule_action {
    int64_t delay_ms;
    int status;      /* 0: the usual answer */
    json_t *headers; /* name → text, or NULL */
    json_t *body;    /* a document; a JSON string is sent as plain text; NULL: none */
    bool hang;       /* no answer; the connection is closed after hang_ms */
    int64_t hang_ms;
    bool reset;  /* the connection is closed without an answer */
    bool effect; /* the request takes effect although its answer is replaced */
};

struct script *script_new(void);
void script_free(struct script *s);
/* Appends one rule (an object) or several (an array), all or none. ERR_REFUSE: which field of which
 * rule, and what is accepted. */
enum err script_add(struct script *s, const json_t *rules, struct why *why) MUST_CHECK;
void script_clear(struct script *s);
/* The action of the first rule that is for this request and not used up; counts the use. NULL:
 * none. repo is "owner/name", or absent. */
const struct rule_action *script_take(struct script *s, struct str method, struct str path,
                                      struct str repo);
/* True when the usual handling is skipped. */
bool rule_replaces(const struct rule_action *action);
/* The rules with how often each was asked ("seen") and used ("hits"). The caller's. */
json_t *script_describe(const struct script *s);

/* Shell globs over whole strings; a star matches slashes too. Case counts, but not for repos. */
bool glob_matches(const char *glob, struct str text);
bool glob_matches_repo(const char *glob, struct str repo);

#endif
