#include "http_server_answer.h"

#include <microhttpd.h>

#include "../base/buf.h"
#include "../base/json_text.h"
#include "../base/mem.h"

enum { ERROR_MAX_BYTES = 8192, DETAIL_MAX_BYTES = 1024 };

struct MHD_Response *http_answer_new(const char *content_type, const struct headers *extra,
                                     struct str body)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(
        body.len, (void *)(uintptr_t)(body.ptr ? body.ptr : ""), MHD_RESPMEM_MUST_COPY);
    if (!response)
        return NULL;
    if (body.len)
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                                content_type ? content_type : "application/json");
    for (size_t i = 0; extra && i < extra->n; i++) {
        char *CLEANUP(mem_free_char) name = str_dup(extra->at[i].name);
        char *CLEANUP(mem_free_char) value = str_dup(extra->at[i].value);
        MHD_add_response_header(response, name,
                                value); /* leaves out what would break the message */
    }
    return response;
}

struct MHD_Response *http_answer_error(const char *key, int status, const char *detail,
                                       struct str allow)
{
    struct buf CLEANUP(buf_clear) text;
    struct headers extra;
    buf_init(&text, ERROR_MAX_BYTES);
    buf_putc(&text, '{');
    json_text_put(&text, str_of(key));
    buf_puts(&text, ": ");
    json_text_put(&text, str_cut(str_of(detail), DETAIL_MAX_BYTES));
    buf_putc(&text, '}');
    headers_init(&extra);
    headers_put(&extra, "Allow", allow);
    if (status == MHD_HTTP_SERVICE_UNAVAILABLE)
        headers_put(&extra, "Retry-After", STR_LIT("2"));
    return http_answer_new(NULL, &extra, buf_str(&text));
}
