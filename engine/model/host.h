/* host.h - what this machine and this process have: cores and memory. Linux. */
#ifndef K3_HOST_H
#define K3_HOST_H

#include <stdbool.h>
#include <stdint.h>

uint32_t k3_host_cores(void);      /* physical cores this process may run on, at least 1 */
uint64_t k3_host_available(void);  /* bytes that could be taken now: RAM and cgroup limit */
uint64_t k3_host_rss(void);        /* resident bytes of this process now */
uint64_t k3_host_rss_anon(void);   /* of these, no pages of files; 0 = the kernel does not say */
uint64_t k3_host_peak_rss(void);   /* VmHWM: the most there ever was */
uint64_t k3_host_page_cache(void);   /* of the whole system: files, whosever they are */
double k3_host_process_seconds(void); /* since this process began, to a hundredth; 0 = unknown */
bool k3_host_always_huge(void);    /* does the system make 2 MiB pages of any memory, unasked */

#endif
