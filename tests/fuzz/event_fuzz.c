/* Webhook bodies, as each kind of event. The first byte chooses the kind. */
#include <stdint.h>
#include <stdlib.h>

#include "common/model/event.h"
#include "common/model/ids.h"
#include "common/model/push.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct event_facts facts;
    struct why why;
    struct push push;
    struct buf key;
    if (size == 0)
        return 0;
    struct str body = { (const char *)data + 1, size - 1 };
    enum event_kind kind = (enum event_kind)(data[0] % (EVENT_PING + 1));
    if (!event_scan(kind, body, &facts, &why)) {
        buf_init(&key, 4096);
        event_key(&key, kind, &facts);
        if (buf_full(&key) || facts.n_labels > EVENT_MAX_LABELS)
            abort();
        buf_clear(&key);
    }
    if (!push_read(body, &push, &why)) {
        for (size_t i = 0; i < push.n; i++)
            if (!sha_valid(str_of(push.commits[i].sha)) || push.commits[i].pr < 0)
                abort();
        push_clear(&push);
    }
    (void)event_push_touches(body, ".github/allowlist.yml");
    return 0;
}
