/* host.c - see host.h. Sources: proc(5), the kernel's cputopology and cgroup-v2 documents. */
#include <config.h>

#include "host.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* "Name:   123 kB" in a file of such lines; 0 when it is not there. */
static uint64_t kilobytes_field(const char *path, const char *name)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return 0;
    char line[256];
    uint64_t kb = 0;
    const size_t n = strlen(name);
    while (fgets(line, sizeof line, f))
        if (strncmp(line, name, n) == 0 && line[n] == ':') {
            kb = strtoull(line + n + 1, NULL, 10);
            break;
        }
    fclose(f);
    return kb * 1024;
}

/* A file with one number; `none` when it is absent or says "max". */
static uint64_t number_file(const char *path, uint64_t none)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return none;
    unsigned long long v;
    const int got = fscanf(f, "%llu", &v);
    fclose(f);
    return got == 1 ? v : none;
}

uint32_t k3_host_cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) {
        const long n = sysconf(_SC_NPROCESSORS_ONLN);
        return n > 0 ? (uint32_t)n : 1;
    }
    uint32_t cores = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &set))
            continue;
        /* A core is counted at the first of its threads that we may use. */
        char path[128], list[128] = "";
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
                 cpu);
        FILE *f = fopen(path, "re");
        const char *got = f ? fgets(list, sizeof list, f) : NULL;
        if (f)
            fclose(f);
        int first = cpu;
        for (char *at = got ? list : NULL; at && *at;) {
            char *end;
            const long a = strtol(at, &end, 10);
            if (end == at)
                break;
            const long b = *end == '-' ? strtol(end + 1, &end, 10) : a;
            for (long i = a; i <= b && i < CPU_SETSIZE; i++)
                if (i >= 0 && CPU_ISSET((int)i, &set) && i < first)
                    first = (int)i;
            at = *end == ',' ? end + 1 : NULL;
        }
        cores += first == cpu;
    }
    return cores ? cores : 1;
}

/* What the cgroup (v2) of this process still allows; UINT64_MAX without a limit. */
static uint64_t cgroup_room(void)
{
    FILE *f = fopen("/proc/self/cgroup", "re");
    if (!f)
        return UINT64_MAX;
    char line[1024], path[1200];
    uint64_t room = UINT64_MAX;
    while (fgets(line, sizeof line, f)) {
        if (strncmp(line, "0::", 3) != 0)
            continue;
        line[strcspn(line, "\n")] = '\0';
        const char *group = strcmp(line + 3, "/") == 0 ? "" : line + 3;
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max", group);
        const uint64_t max = number_file(path, UINT64_MAX);
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.current", group);
        const uint64_t used = number_file(path, 0);
        if (max != UINT64_MAX)
            room = max > used ? max - used : 0;
    }
    fclose(f);
    return room;
}

uint64_t k3_host_available(void)
{
    const uint64_t ram = kilobytes_field("/proc/meminfo", "MemAvailable");
    const uint64_t room = cgroup_room();
    return ram < room ? ram : room;
}

uint64_t k3_host_rss(void)
{
    return kilobytes_field("/proc/self/status", "VmRSS");
}

uint64_t k3_host_rss_anon(void)
{
    return kilobytes_field("/proc/self/status", "RssAnon");
}

uint64_t k3_host_peak_rss(void)
{
    return kilobytes_field("/proc/self/status", "VmHWM");
}

uint64_t k3_host_page_cache(void)
{
    return kilobytes_field("/proc/meminfo", "Cached");
}

double k3_host_process_seconds(void)
{
    FILE *f = fopen("/proc/self/stat", "re");
    if (!f)
        return 0;
    char line[1024];
    const char *at = fgets(line, sizeof line, f) ? strrchr(line, ')') : NULL;
    fclose(f);
    for (int field = 2; at && field < 22; field++) /* starttime is the 22nd, the name the 2nd */
        at = strchr(at + 1, ' ');
    struct timespec now;
    const long ticks = sysconf(_SC_CLK_TCK);
    if (!at || ticks <= 0 || clock_gettime(CLOCK_BOOTTIME, &now) != 0)
        return 0;
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec - strtod(at, NULL) / (double)ticks;
}

bool k3_host_always_huge(void)
{
    FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "re");
    if (!f)
        return false;
    char line[128];
    const bool always = fgets(line, sizeof line, f) && strstr(line, "[always]");
    fclose(f);
    return always;
}
