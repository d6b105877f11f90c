/* The command line of a daemon. */
#ifndef CRCR_DAEMON_ARGS_H
#define CRCR_DAEMON_ARGS_H

#include "../base/err.h"
#include "../base/str.h"

struct daemon_args {
    bool help, version, check_config;
    struct str roles; /* absent: not given */
};

/* ERR_REFUSE: an argument that is not known, or --roles without a value. */
enum err args_parse(int argc, char **argv, struct daemon_args *ret, struct why *why) MUST_CHECK;

#endif
