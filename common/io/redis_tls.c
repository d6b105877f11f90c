#include <hiredis/hiredis.h>
#ifdef CRCR_HAVE_HIREDIS_SSL
#include <hiredis/hiredis_ssl.h>
#include <stdlib.h>

#include "../base/mem.h"
#endif
#include "redis_inner.h"

#ifdef CRCR_HAVE_HIREDIS_SSL

struct redis_tls {
    redisSSLContext *context;
};

enum err redis_tls_new(struct redis_tls **ret, const struct redis_options *options,
                       const char *host, struct why *why)
{
    redisSSLContextError failed = REDIS_SSL_CTX_NONE;
    const char *system = options->ca_file ? NULL : "/etc/ssl/certs";
    redisInitOpenSSL();
    redisSSLContext *context =
        redisCreateSSLContext(options->ca_file, system, NULL, NULL, host, &failed);
    if (!context)
        return why_set(why, ERR_STOP, "redis TLS: %s", redisSSLContextGetError(failed));
    struct redis_tls *tls = mem_alloc(1, sizeof(*tls));
    tls->context = context;
    *ret = tls;
    return OK;
}

void redis_tls_free(struct redis_tls *tls)
{
    if (tls)
        redisFreeSSLContext(tls->context);
    free(tls);
}

enum err redis_tls_start(struct redis_tls *tls, redisContext *link, struct why *why)
{
    if (redisInitiateSSLWithContext(link, tls->context) == REDIS_OK)
        return OK;
    return why_set(why, ERR_RETRY, "redis TLS: %s", link->errstr);
}

#else

enum err redis_tls_new(struct redis_tls **ret, const struct redis_options *options,
                       const char *host, struct why *why)
{
    (void)ret, (void)options, (void)host;
    return why_set(why, ERR_STOP,
                   "CRCR_REDIS_TLS needs hiredis 1.0 or newer with hiredis_ssl; this program was "
                   "built with hiredis %d.%d.%d",
                   HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
}

void redis_tls_free(struct redis_tls *tls)
{
    (void)tls;
}

enum err redis_tls_start(struct redis_tls *tls, redisContext *link, struct why *why)
{
    (void)tls, (void)link;
    return why_set(why, ERR_STOP, "redis TLS is not built in");
}

#endif
