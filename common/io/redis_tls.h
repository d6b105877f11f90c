/* TLS of a connection to Redis: who signed the server's certificate, and whether it is for the host
 * that was asked for (RFC 6125). hiredis' own context checks the first alone. */
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

/* Shakes hands on a new connection, which stays the caller's. ERR_RETRY: the server's certificate
 * is not what it must be, or the connection broke. */
enum err redis_tls_start(const struct redis_tls *tls, struct redisContext *link,
                         struct why *why) MUST_CHECK;

#endif
