/* Providers files. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/model/providers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct providers *p = NULL;
    struct why why;
    if (providers_parse(&p, "f.yml", (struct str){ (const char *)data, size }, &why)) {
        if (strncmp(why.text, "f.yml:", 6) != 0 || strchr(why.text, '\n'))
            abort();
        return 0;
    }
    static const char *const tokens[][2] = {
        { "https://agent.buildkite.com",
          "0191f7a4-1c2d-7e3f-8a4b-5c6d7e8f9a0b/018c1234-aaaa-4bbb-8ccc-1234567890ab" },
        { "https://gitlab.example", "vendor/oot" },
    };
    for (size_t k = 0; k < 2; k++) {
        const struct provider *provider = providers_of(p, str_of(tokens[k][0]));
        const struct provider_pipeline *found =
            provider ? providers_find(provider, str_of(tokens[k][1])) : NULL;
        for (size_t i = 0; found && i < found->n_claims; i++)
            if (found->claims[i].n_values == 0)
                abort();
    }
    if (providers_of(p, STR_LIT("https://token.actions.githubusercontent.com")))
        abort();
    providers_free(p);
    return 0;
}
