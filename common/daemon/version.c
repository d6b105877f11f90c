#include "daemon.h"

const char *daemon_version(void)
{
    return CRCR_VERSION;
}
