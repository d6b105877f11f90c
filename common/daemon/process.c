#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon_private.h"

enum { MAX_FDS = 65536 }; /* six times the connections that ingest takes */

int64_t process_rss_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file)
        return -1;
    long size, resident;
    int n = fscanf(file, "%ld %ld", &size, &resident);
    fclose(file);
    return n == 2 ? (int64_t)resident * sysconf(_SC_PAGESIZE) : -1;
}

int64_t process_open_fds(void)
{
    DIR *folder = opendir("/proc/self/fd");
    if (!folder)
        return -1;
    int64_t n = -1; /* the folder itself */
    struct dirent *entry;
    while ((entry = readdir(folder)))
        if (entry->d_name[0] != '.')
            n++;
    closedir(folder);
    return n;
}

void process_raise_max_fds(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= MAX_FDS)
        return;
    limit.rlim_cur = limit.rlim_max < MAX_FDS ? limit.rlim_max : MAX_FDS;
    setrlimit(RLIMIT_NOFILE, &limit); /* cannot fail up to rlim_max; if it does, fewer must do */
}

void process_refuse_cores(void)
{
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 }); /* to lower a limit is always allowed */
}

void process_refuse_tracing(void)
{
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* cannot fail with 0 */
}

int64_t process_max_fds(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return -1;
    return limit.rlim_cur > INT64_MAX ? INT64_MAX : (int64_t)limit.rlim_cur;
}

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

double process_cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void process_owner(char *to, size_t size)
{
    char host[65] = "";
    if (gethostname(host, sizeof(host) - 1) != 0 || !host[0])
        snprintf(host, sizeof(host), "host");
    uint32_t random = 0;
    ssize_t n = getrandom(&random, sizeof(random), 0); /* all, if so few bytes (getrandom(2)) */
    (void)n;
    snprintf(to, size, "%s-%ld-%08x", host, (long)getpid(), (unsigned)random);
}
