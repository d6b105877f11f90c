#include "redis_tls.h"

#include <hiredis/hiredis.h>

#ifdef CRCR_HAVE_HIREDIS_SSL
#include <hiredis/hiredis_ssl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stdlib.h>

#include "../base/mem.h"

#define SYSTEM_CA "/etc/ssl/certs/ca-certificates.crt" /* Debian's; all that the image has */

struct redis_tls {
    SSL_CTX *context;
    char *host;
};

enum err redis_tls_new(struct redis_tls **ret, const char *host, const char *ca_file,
                       struct why *why)
{
    const char *file = ca_file ? ca_file : SYSTEM_CA;
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    if (!context || SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1 ||
        SSL_CTX_load_verify_locations(context, file, NULL) != 1) {
        SSL_CTX_free(context);
        return why_set(why, ERR_STOP, "redis TLS: no authority in %s", file);
    }
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    *ret = mem_alloc(1, sizeof(**ret));
    **ret = (struct redis_tls){ context, mem_dup(host) };
    return OK;
}

void redis_tls_free(struct redis_tls *tls)
{
    if (!tls)
        return;
    SSL_CTX_free(tls->context);
    free(tls->host);
    free(tls);
}

/* The certificate must name the address, or the host; a host is also asked for (SNI). */
static bool host_set(SSL *ssl, const char *host)
{
    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1)
        return true;
    return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

enum err redis_tls_start(const struct redis_tls *tls, redisContext *link, struct why *why)
{
    SSL *ssl = SSL_new(tls->context);
    if (ssl && host_set(ssl, tls->host) && redisInitiateSSL(link, ssl) == REDIS_OK)
        return OK; /* it is the connection's now */
    long verified = ssl ? SSL_get_verify_result(ssl) : X509_V_OK;
    SSL_free(ssl);
    ERR_clear_error();
    if (verified != X509_V_OK)
        return why_set(why, ERR_RETRY, "redis TLS: certificate verify failed: %s",
                       X509_verify_cert_error_string(verified));
    return why_set(why, ERR_RETRY, "redis TLS: %s", link->err ? link->errstr : "out of memory");
}

#else

enum err redis_tls_new(struct redis_tls **ret, const char *host, const char *ca_file,
                       struct why *why)
{
    (void)ret, (void)host, (void)ca_file;
    return why_set(why, ERR_STOP,
                   "CRCR_REDIS_TLS needs hiredis 1.0 or newer with hiredis_ssl; this program was "
                   "built with hiredis %d.%d.%d",
                   HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
}

void redis_tls_free(struct redis_tls *tls)
{
    (void)tls;
}

enum err redis_tls_start(const struct redis_tls *tls, redisContext *link, struct why *why)
{
    (void)tls, (void)link, (void)why;
    return OK;
}

#endif
