#include <string.h>

#include "../../common/model/allowlist.h"
#include "ctl.h"
#include "file.h"

static void print_sizes(const char *file, const struct allowlist *list)
{
    size_t n[5] = { 0 };

    for (size_t i = 0; i < allowlist_size(list); i++)
        n[allowlist_at(list, i)->level]++;
    printf("%s: valid: %zu repositories (L1 %zu, L2 %zu, L3 %zu, L4 %zu)\n", file,
           allowlist_size(list), n[1], n[2], n[3], n[4]);
}

int verb_allowlist(struct ctl *ctl, int argc, char **argv)
{
    struct allowlist *list;
    struct buf text;
    struct why why;

    if (argc != 3 || strcmp(argv[1], "check"))
        return ctl_usage(ctl, false);
    buf_init(&text, ALLOWLIST_MAX_BYTES);
    enum err err = file_read(&text, argv[2], &why);
    if (err == OK)
        err = allowlist_parse(&list, argv[2], buf_str(&text), &why);
    buf_clear(&text);
    if (err != OK) {
        fprintf(stderr, "%s\n", why.text); /* file:line:column first, as compilers do */
        return CTL_PROBLEM;
    }
    print_sizes(argv[2], list);
    allowlist_free(list);
    return CTL_OK;
}
