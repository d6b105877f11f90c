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

/* A listening socket, non-blocking, on "host:port"; *port becomes the one that it got (0 asks for a
 * free one). ERR_REFUSE: the address; ERR_STOP: it cannot be had, such as a port that is taken. */
enum err host_port_listen(const char *text, int *fd, int *port, struct why *why) MUST_CHECK;

#endif
