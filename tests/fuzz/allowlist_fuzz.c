/* Allowlist files. Every entry of a list that is taken is found again, and an error says where. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/model/allowlist.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct allowlist *list = NULL;
    struct why why;
    if (allowlist_parse(&list, "f.yml", (struct str){ (const char *)data, size }, &why)) {
        if (strncmp(why.text, "f.yml:", 6) != 0 || strchr(why.text, '\n'))
            abort();
        return 0;
    }
    for (size_t i = 0; i < allowlist_size(list); i++) {
        const struct allowlist_entry *e = allowlist_at(list, i);
        if (allowlist_find(list, e->repo) != e || e->level < 1 || e->level > 4 || e->line < 1)
            abort();
        if ((e->level == 3) != (e->device.len > 0) || (!e->pull_request && !e->nightly))
            abort();
        for (size_t j = 0; j < e->n_oncalls; j++)
            if (e->oncalls[j].len == 0)
                abort();
    }
    if (allowlist_lost(list, list) != 0)
        abort();
    allowlist_free(list);
    return 0;
}
