#include "../../common/model/allowlist.h"
#include "verbs.h"

int verb_allowlist(struct ctl *ctl, const struct args *args)
{
    const char *file = args->names[0];
    struct buf CLEANUP(buf_clear) text;
    struct allowlist *list;
    size_t n[5] = { 0 };
    struct why why;
    (void)ctl;
    buf_init(&text, ALLOWLIST_MAX_BYTES);
    enum err err = ctl_read_file(&text, file, &why);
    if (!err)
        err = allowlist_parse(&list, file, buf_str(&text), &why);
    if (err) {
        fprintf(stderr, "%s\n", why.text); /* file:line:column first, as compilers do */
        return CTL_PROBLEM;
    }
    for (size_t i = 0; i < allowlist_size(list); i++)
        n[allowlist_at(list, i)->level]++;
    printf("%s: valid: %zu repositories (L1 %zu, L2 %zu, L3 %zu, L4 %zu)\n", file,
           allowlist_size(list), n[1], n[2], n[3], n[4]);
    allowlist_free(list);
    return CTL_OK;
}
