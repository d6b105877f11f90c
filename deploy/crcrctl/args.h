/* The command line, read by the table of verbs.h. */
#ifndef CRCR_CTL_ARGS_H
#define CRCR_CTL_ARGS_H

#include "verbs.h"

/* The verb that argv begins with, and how many words its name has; NULL: there is none. */
const struct verb *args_verb(int argc, char **argv, int *words);
/* argv[0] is the last word of the verb's name; argv is reordered and kept. ctl needs its verb, and
 * its topics where the verb has an option that takes one. CTL_USAGE: what is wrong and what is
 * accepted is on stderr. */
int args_parse(const struct ctl *ctl, const struct verb *verb, int argc, char **argv,
               struct args *ret);
#define ARGS_TOPICS                                                                                   \
    "events, dispatch.l1 … dispatch.l4, delay.10s … delay.1h, dispatches, callbacks, reconcile, " \
    "results, allowlist, dlq"
/* The topic of that name, with or without the prefix; TOPIC_COUNT: there is none. */
enum topic args_topic(const struct ctl *ctl, const char *name);
/* How --help writes the option's value: "TIME"; "" for a flag. */
const char *option_value(const struct option_row *row);

#endif
