#include "provenance.h"

#include <ctype.h>
#include <string.h>

const char *provenance_name(enum provenance_kind kind)
{
    static const char *const names[] = {
        [PROVENANCE_TOKEN] = "token",
        [PROVENANCE_RECORD] = "record",
        [PROVENANCE_PENDING] = "pending",
        [PROVENANCE_SELF] = "self",
    };
    return names[kind];
}

static bool provenance_set(struct provenance *ret, enum provenance_kind kind, int64_t pr,
                           const char *head_sha, int64_t dispatched_ms)
{
    *ret = (struct provenance){ .kind = kind, .pr = pr, .dispatched_ms = dispatched_ms };
    (void)str_copy(ret->head_sha, sizeof(ret->head_sha), str_of(head_sha));
    return true;
}

/* Git writes commits in lower case: one commit, one name. */
void provenance_of_self(const struct callback *fields, struct provenance *ret)
{
    (void)provenance_set(ret, PROVENANCE_SELF, 0, "", 0);
    (void)str_lower(ret->head_sha, sizeof(ret->head_sha), str_of(callback_commit(fields)));
}

bool provenance_of_token(const struct callback *fields, struct str repo,
                         const struct callback_token *token, struct provenance *ret,
                         struct answer *a)
{
    if (strcmp(token->delivery, fields->delivery_id) != 0)
        return answer_refuse(a, 403, "callback_token_delivery",
                             "the callback_token is for another delivery");
    if (!str_eq_nocase(str_of(token->repo), repo))
        return answer_refuse(a, 403, "callback_token_repo",
                             "the callback_token is for another repository");
    return provenance_set(ret, PROVENANCE_TOKEN, token->pr, token->head_sha, token->dispatched_ms);
}

/* ---- the dispatch record -------------------------------------------------------------------- */

static bool hex_digits(struct str text, uint64_t *ret)
{
    uint64_t value = 0;
    for (size_t i = 0; i < text.len; i++) {
        int c = tolower((unsigned char)text.ptr[i]);
        if (!isxdigit(c))
            return false;
        value = value << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    *ret = value;
    return true;
}

bool delivery_time(struct str delivery, int64_t *wall_ms)
{
    /* time_low-time_mid-1time_high-…, in units of 100 ns since 1582-10-15 */
    const uint64_t epoch = UINT64_C(0x01B21DD213814000);
    uint64_t low, mid, high;
    if (delivery.len != 36 || delivery.ptr[8] != '-' || delivery.ptr[13] != '-' ||
        delivery.ptr[14] != '1' || delivery.ptr[18] != '-' || delivery.ptr[23] != '-')
        return false;
    if (!hex_digits((struct str){ delivery.ptr, 8 }, &low) ||
        !hex_digits((struct str){ delivery.ptr + 9, 4 }, &mid) ||
        !hex_digits((struct str){ delivery.ptr + 15, 3 }, &high))
        return false;
    uint64_t time = high << 48 | mid << 32 | low;
    if (time < epoch)
        return false;
    *wall_ms = (int64_t)((time - epoch) / 10000);
    return true;
}

/* If GitHub's clock is ahead of ours, the delivery counts as recent, within the same limit. */
static bool is_recent(struct str delivery, int64_t now_ms)
{
    int64_t at_ms;
    return delivery_time(delivery, &at_ms) && at_ms > now_ms - PROVENANCE_GRACE_MS &&
           at_ms < now_ms + PROVENANCE_GRACE_MS;
}

bool provenance_of_lookup(const struct callback *fields, const struct dispatch_lookup *lookup,
                          int64_t now_ms, struct provenance *ret, struct answer *a)
{
    const struct dispatch_record *record = &lookup->record;
    if (lookup->result == LOOKUP_FOUND)
        return provenance_set(ret, PROVENANCE_RECORD, record->pr, record->head_sha,
                              record->dispatched_ms);
    if (lookup->result == LOOKUP_NONE && !is_recent(str_of(fields->delivery_id), now_ms))
        return answer_refuse(a, 400, "no_dispatch_record", "no matching dispatch record%s",
                             fields->callback_token[0]
                                 ? ""
                                 : ", and the body has no callback_token: send back the whole "
                                   "client_payload of the dispatch, unchanged");
    return provenance_set(ret, PROVENANCE_PENDING, 0, "", 0);
}
