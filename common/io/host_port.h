/* "host:port" and "[IPv6]:port", as the configuration writes addresses. */
#ifndef CRCR_IO_HOST_PORT_H
#define CRCR_IO_HOST_PORT_H

#include "../base/err.h"
#include "../base/str.h"

struct host_port {
    char host[256]; /* without brackets */
    char port[6];   /* decimal, at most 65535 */
};

/* ERR_REFUSE: anything else, said with the text. */
enum err host_port_parse(const char *text, struct host_port *to, struct why *why) MUST_CHECK;

#endif
