#include "attempt.h"

/* False: it is a name. *ret: without leading zeros. */
static bool is_number(struct str attempt, struct str *ret)
{
    size_t zeros = 0;
    for (size_t i = 0; i < attempt.len; i++) {
        if (attempt.ptr[i] < '0' || attempt.ptr[i] > '9')
            return false;
        zeros += zeros == i && attempt.ptr[i] == '0';
    }
    *ret = str_from(attempt, zeros);
    return true;
}

int attempt_compare(struct str a, struct str b)
{
    struct str number_a = STR_NONE, number_b = STR_NONE;
    bool is_a = is_number(a, &number_a), is_b = is_number(b, &number_b);
    if (is_a != is_b)
        return is_a ? -1 : 1;
    if (number_a.len != number_b.len)
        return number_a.len < number_b.len ? -1 : 1;
    int order = str_cmp(number_a, number_b);
    return order != 0 ? order : str_cmp(a, b);
}

int64_t attempt_number(struct str attempt)
{
    uint64_t number;
    return str_to_u64(attempt, &number) && number <= INT32_MAX ? (int64_t)number : 0;
}
