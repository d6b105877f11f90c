#include "config.h"

enum err config_budget(const struct config *c, struct budget_rules *ret, struct why *why)
{
    const char *content = config_text(c, "CRCR_BUDGET_CONTENT_CALLS");
    struct budget_rules rules = {
        .limit = { [BUDGET_REQUESTS_HOUR] = config_number(c, "CRCR_BUDGET_REQUESTS_HOUR"),
                   [BUDGET_POINTS_MINUTE] = config_number(c, "CRCR_BUDGET_POINTS_MINUTE"),
                   [BUDGET_CONTENT_MINUTE] = config_number(c, "CRCR_BUDGET_CONTENT_MINUTE"),
                   [BUDGET_CONTENT_HOUR] = config_number(c, "CRCR_BUDGET_CONTENT_HOUR") },
        .replicas = (int)config_number(c, "CRCR_BUDGET_REPLICAS"),
        .one_for_the_app = str_is(str_of(config_text(c, "CRCR_BUDGET_SCOPE")), "app"),
    };
    if (!budget_content_parse(&rules, str_of(content)))
        return why_set(why, ERR_STOP,
                       "CRCR_BUDGET_CONTENT_CALLS: \"%s\"; accepted are dispatch, check_run and "
                       "comment, comma-separated, or none",
                       content);
    *ret = rules;
    return OK;
}
