#include "callback.h"

#include <string.h>
#include <strings.h>

#include "../common/model/ids.h"
#include "../common/model/json_scan.h"

bool callback_bearer(struct str authorization, struct str *token, struct answer *a)
{
    static const char scheme[] = "Bearer "; /* any case: RFC 9110 section 11.1 */
    const size_t len = sizeof(scheme) - 1;
    if (!authorization.ptr)
        return answer_refuse(a, 401, "token_missing", "Authorization: Bearer <OIDC token> needed");
    if (authorization.len <= len || strncasecmp(authorization.ptr, scheme, len) != 0)
        return answer_refuse(a, 401, "token_malformed", "Authorization is not Bearer <token>");
    *token = str_trim(str_from(authorization, len));
    return true;
}

bool callback_body_read(struct str body, struct str attempt, struct callback_body *ret,
                        struct answer *a)
{
    ret->fields_valid = !callback_parse(body, attempt, &ret->fields, &ret->fault);
    if (ret->fields_valid)
        return true;
    /* Scans a refused body again: is it the JSON, or its content? */
    const struct json_rules rules = { .reject_duplicates = true,
                                      .max_members = CALLBACK_MAX_MEMBERS,
                                      .nul_in_others = true };
    struct why why;
    if (!json_scan(body, &rules, NULL, 0, NULL, &why))
        return true;
    return answer_refuse(a, 400, "body_malformed", "%s", why.text);
}

void callback_body_clear(struct callback_body *body)
{
    if (body->fields_valid)
        callback_clear(&body->fields);
    body->fields_valid = false;
}

bool callback_admit(const struct allowlist *list, struct str repo,
                    const struct allowlist_entry **entry, struct answer *a)
{
    if (!list)
        return answer_later(a, 503, "no_allowlist", 30, "no allowlist has been published yet");
    const struct allowlist_entry *found = allowlist_find(list, repo);
    if (!found)
        return answer_ignore(a, "repo_unlisted", CALLBACK_IGNORED("not_listed"));
    if (found->level < 2)
        return answer_ignore(a, "repo_level_1", CALLBACK_IGNORED("level_1"));
    *entry = found;
    return true;
}

bool callback_fields_check(const struct callback_body *body, const struct allowlist_entry *entry,
                           struct answer *a)
{
    if (!body->fields_valid)
        return answer_refuse(a, 400, "field_bad", "%s", body->fault.text);
    if (!callback_is_self(&body->fields))
        return true;
    if (body->fields.status != JOB_COMPLETED)
        return answer_refuse(a, 400, "self_not_completed",
                             "event_type %s: only workflow.status completed is accepted",
                             body->fields.event_type);
    if (!entry->nightly)
        return answer_ignore(a, "self_not_registered", CALLBACK_IGNORED("event_not_wanted"));
    return true;
}

void callback_answer(struct buf *to, const char *status, const struct callback *fields)
{
    buf_printf(to, "{\"ok\":true,\"status\":\"%s\"", status);
    if (fields->warnings) {
        buf_puts(to, ",\"warnings\":");
        buf_puts(to, fields->warnings);
    }
    buf_putc(to, '}');
}

void callback_key(struct buf *to, const struct callback *fields, struct str repo)
{
    buf_puts(to, fields->delivery_id);
    buf_putc(to, '/');
    buf_put(to, repo);
}

void callback_to_headers(const struct callback *fields, const struct callback_origin *origin,
                         const struct provenance *provenance, struct headers *to)
{
    headers_put(to, "repo", origin->repo);
    headers_put(to, "level", str_of(level_name(origin->level)));
    headers_put(to, "issuer", origin->issuer);
    if (origin->run_attempt.len > 0) /* the body need not have it */
        headers_put(to, "run_attempt", origin->run_attempt);
    headers_put(to, "provenance", str_of(provenance_name(provenance->kind)));
    headers_put(to, "delivery", str_of(fields->delivery_id));
    if (provenance->pr > 0)
        headers_put_i64(to, "pr", provenance->pr);
    if (provenance->head_sha[0] != '\0')
        headers_put(to, "head_sha", str_of(provenance->head_sha));
    if (provenance->dispatched_ms > 0)
        headers_put_i64(to, "dispatched_ms", provenance->dispatched_ms);
    headers_put_i64(to, "received_ms", origin->received_ms);
}
