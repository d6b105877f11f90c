/* "host:port" and "[IPv6]:port", as the configuration writes addresses. */
#ifndef CRCR_IO_HOST_PORT_H
#define CRCR_IO_HOST_PORT_H

#include "../base/err.h"
#include "../base/str.h"

struct host_port {
    char host[256]; /* without brackets */
    char port[6];   /* decimal, at most 65535 */
};

/* ERR_REFUSE: anything else; why repeats the text. */
enum err host_port_parse(const char *text, struct host_port *to, struct why *why) MUST_CHECK;

/* Opens a non-blocking listening socket on "host:port"; port 0 picks a free one, *port is the real
 * one. ERR_REFUSE: malformed address; ERR_STOP: it cannot be bound (the port is taken). */
enum err host_port_listen(const char *text, int *fd, int *port, struct why *why) MUST_CHECK;

#endif
