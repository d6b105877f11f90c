#include <string.h>

#include "ctl.h"

int verb_config(struct ctl *ctl, int argc, char **argv)
{
    struct buf table;

    if (argc != 2 || strcmp(argv[1], "--markdown"))
        return ctl_usage(ctl, false);
    buf_init(&table, 1u << 20);
    config_markdown(&table);
    fwrite(table.ptr, 1, table.len, stdout);
    buf_clear(&table);
    return CTL_OK;
}
