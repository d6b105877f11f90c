/* The table of verbs and their options, and what reads it: parsing (args.c), --help and the manual
 * page (help.c), completion and "did you mean" (complete.c). Nothing else knows what a verb takes.
 */
#ifndef CRCR_CTL_VERBS_H
#define CRCR_CTL_VERBS_H

#include "../../common/model/levels.h"
#include "ctl.h"

/* What an option takes, and the type of its field in struct args. */
enum option_type {
    OPTION_FLAG,     /* bool; takes no value */
    OPTION_TEXT,     /* const char *: any text */
    OPTION_CHOICE,   /* const char *: one of `value`, "a|b|c" */
    OPTION_REPO,     /* const char *: owner/repo */
    OPTION_DELIVERY, /* const char *: an id such as GitHub's GUIDs */
    OPTION_TOPIC,    /* const char *: a topic, with or without the prefix */
    OPTION_GROUP,    /* a consumer group; words only */
    OPTION_CONTEXT,  /* const char *: the name of a context */
    OPTION_POSITION, /* PARTITION@OFFSET of the dead-letter queue; words only */
    OPTION_TIME,     /* int64_t: wall clock in milliseconds, from "2h" ago or an RFC 3339 time */
    OPTION_DURATION, /* int64_t: milliseconds, > 0 and at most max */
    OPTION_NUMBER,   /* int64_t: 1 … max */
    OPTION_RATE,     /* int64_t: 1 … 10000 a second */
    OPTION_PERCENT,  /* double: 0 … 100 */
};

/* The values of all options; a verb reads those of its row. Without a value and a default: 0 or
 * NULL. Text is borrowed from argv or the table. */
struct args {
    char **names; /* the words that are no options; the row says how many it takes */
    size_t n_names;
    const char *pull_request;
    bool json, follow, all, dry_run, again, yes, wait, status, apply, items, partitions, markdown,
        watch, personal;
    const char *brokers, *redis, *context; /* of all that need a configuration */
    const char *reason, *delivery, *repo, *class, *source, *topic, *resume, *event, *url, *file,
        *dir, *organization;
    /* send-callback */
    const char *token_file, *state, *conclusion, *workflow, *job, *run_id, *run_attempt;
    int64_t pr, tier, rate, replication, lines, port;
    int64_t since_ms, until_ms; /* wall clock; redeliver: how long ago */
    int64_t timeout_ms, every_ms;
    struct level_rules rules;
    char found[DELIVERY_MAX + 1]; /* the id that begins with what was given (delivery.c) */
};

#define SHELLS "bash|zsh|fish" /* what `completion` writes for */

struct option_row {
    const char *name; /* without "--"; NULL: the end */
    enum option_type type;
    size_t at;           /* of its field in struct args */
    const char *help;    /* one sentence or two */
    const char *initial; /* its default, as a user would write it; NULL: none */
    const char *value;   /* the value's name in --help; NULL: that of the type */
    int64_t max;         /* NUMBER, DURATION; 0: that of the type */
    char letter;         /* "-f"; 0: none */
};

enum needs { NEEDS_NOTHING, NEEDS_CONFIG, NEEDS_KAFKA }; /* KAFKA: and the configuration */

struct verb;
typedef int verb_fn(struct ctl *ctl, const struct args *args);

struct verb {
    const char *name;      /* one word, or two: "dlq list" */
    const char *arguments; /* the other words, as --help shows them; their type goes by it */
    size_t min, max;       /* how many of them */
    verb_fn *run;
    enum needs needs; /* what must be set before it runs */
    const char *summary;
    const char *text;  /* a paragraph, or several with "\n" between */
    const char *codes; /* exit codes; NULL: 0 and 2 */
    struct option_row options[16];
};

extern const struct verb verbs[];
extern const size_t n_verbs;
/* Of all verbs that need a configuration. */
#define COMMON_OPTIONS 3
extern const struct option_row common_options[COMMON_OPTIONS + 1];

verb_fn verb_tail, verb_trace, verb_send_webhook, verb_send_callback, verb_dlq_list, verb_dlq_show,
    verb_dlq_replay, verb_dlq_drop, verb_replay, verb_rebuild_hud, verb_redeliver,
    verb_allowlist_check, verb_allowlist_save, verb_allowlist_restore, verb_app_create,
    verb_app_check, verb_lag, verb_topics_create, verb_topics_check, verb_probe, verb_levels,
    verb_score, verb_config, verb_manual, verb_completion, verb_help, verb_version, verb_context;

/* ---- args.c --------------------------------------------------------------------------------- */

/* The verb that argv begins with, and how many words its name has; NULL: there is none. */
const struct verb *args_verb(int argc, char **argv, int *words);
/* The verb's i-th option, its own first, then those of all verbs that need a configuration; NULL:
 * it has no more. */
const struct option_row *verb_option(const struct verb *verb, size_t i);
/* What the verb's other words are; OPTION_TEXT: files and the like. */
enum option_type verb_words(const struct verb *verb);
/* argv[0] is the last word of the verb's name; argv is reordered and kept. ctl must have its verb
 * and topics: as long as it has no configuration, topics and groups may have any prefix. CTL_USAGE:
 * stderr says what is wrong and what is accepted. */
int args_parse(const struct ctl *ctl, const struct verb *verb, int argc, char **argv,
               struct args *ret);
/* The topic of that name, with or without the prefix; TOPIC_COUNT: there is none. */
enum topic args_topic(const struct ctl *ctl, const char *name);
/* How --help writes the option's value: "TIME"; "" for a flag. */
const char *option_value(const struct option_row *row);

/* ---- contexts.c ----------------------------------------------------------------------------- */

/* Appends their names, a line each: those of the files NAME.env of crcr in $XDG_CONFIG_HOME or
 * ~/.config. */
void contexts_names(struct buf *to);
bool context_exists(const char *name);
/* Makes the environment what a verb goes by, and says where it is from: --context; else what it is,
 * if that, --brokers or --redis says where Kafka or Redis is; else the context `default`, if there
 * is one. A context's settings are all: nothing of two installations is mixed, but that --brokers
 * and --redis replace one. ERR_REFUSE: a line of the file is wrong. */
enum err context_apply(const struct args *args, char from[CONTEXT_PATH],
                       struct why *why) MUST_CHECK;

/* ---- delivery.c ----------------------------------------------------------------------------- */

/* Where the verb looks for a delivery: puts the whole id in place of its beginning. One that
 * nothing begins with stays. CTL_USAGE: several do, which stderr lists. */
int delivery_complete(const struct ctl *ctl, const struct verb *verb, struct args *args);

/* ---- help.c --------------------------------------------------------------------------------- */

/* All verbs, one line each. */
void help_all(struct buf *to);
/* The verb of that name, or the verbs whose name begins with that word; false: there are none. */
bool help_verb(struct buf *to, const char *name);
/* A page for man(1). */
void help_manual(struct buf *to);
/* Prints help, to stdout when it was asked for: all verbs; of a word all that begin with it; of a
 * verb's name all. Anything else: that it is no verb, and those that may be meant. Returns what to
 * exit with. */
int help_print(bool asked, int argc, char **argv);

/* ---- complete.c ------------------------------------------------------------------------------ */

/* Appends all names of a kind, a line each: all verbs ("dlq", "dlq list", …); the verb's options;
 * what an option or a word of that type can be (choices: its row's value), as far as that is known
 * without asking anybody. */
void names_of_verbs(struct buf *to);
void names_of_options(struct buf *to, const struct verb *verb);
void names_of_values(struct buf *to, enum option_type type, const char *choices);
/* Appends "; did you mean tail?" with those of the names, a line each, that begin with the word or
 * are nearest to it: at most two letters differ. Nothing when there is none. */
void suggest(struct buf *to, const char *word, struct str names);
/* What the last of the words can be, a line each; the others are the command line before it. */
void complete(struct buf *to, int argc, char **argv);

#endif
