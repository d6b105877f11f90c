/* The installations that crcrctl knows by a name: crcr/contexts.yml in $XDG_CONFIG_HOME or
 * ~/.config, a mapping of names. A context has all settings of its installation, so that nothing of
 * two is mixed: brokers, redis and prefix, others as the environment names them
 * (deploy/CONFIGURATION.md). The name of the current one is in crcr/context. */
#ifndef CRCR_CTL_CONTEXTS_H
#define CRCR_CTL_CONTEXTS_H

#include "../../common/base/buf.h"

struct args;

/* What a verb goes by, as "NAME=value" for config_load, and where it is from, for people:
 * --context; else the environment, if it says where Kafka or Redis is; else the current context.
 * --brokers and --redis replace one value. *ret is the caller's, for contexts_environment_free.
 * ERR_REFUSE: the file is wrong, or has no such context. */
enum err contexts_environment(const struct args *args, char ***ret, struct buf *from,
                              struct why *why) MUST_CHECK;
void contexts_environment_free(char **environment);
/* Appends their names, a line each; nothing when the file is not there, or wrong. */
void contexts_names(struct buf *to);

#endif
