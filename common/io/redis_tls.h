/* TLS of a connection to Redis: checks who signed the server's certificate, and that it is for the
 * host of the endpoint (RFC 6125). hiredis' own context checks only the first. */
#ifndef CRCR_IO_REDIS_TLS_H
#define CRCR_IO_REDIS_TLS_H

#include "../base/err.h"

struct redis_tls;
struct redisContext;

/* host: a name or an address, as the endpoint has it; copied. ca_file: PEM; NULL: the system's.
 * ERR_STOP: the authority cannot be read, or this hiredis has no TLS. *ret is the caller's. */
enum err redis_tls_new(struct redis_tls **ret, const char *host, const char *ca_file,
                       struct why *why) MUST_CHECK;
void redis_tls_free(struct redis_tls *tls);

/* TLS handshake on a new connection, which stays the caller's. ERR_RETRY: the server's certificate
 * was refused, or the connection broke. */
enum err redis_tls_start(const struct redis_tls *tls, struct redisContext *link,
                         struct why *why) MUST_CHECK;

#endif
