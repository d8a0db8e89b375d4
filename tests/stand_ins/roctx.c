/* Stand-in of librocprofiler-sdk-roctx: writes each range that ends to the file FAKE_ROCTX_TRACE, as a profiler would see it. */

#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { DEEPEST = 16, LONGEST = 512 };
static _Thread_local char names[DEEPEST][LONGEST];
static _Thread_local uint64_t starts[DEEPEST];
static _Thread_local int depth;

static uint64_t clock_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}
int roctxRangePushA(const char *name) {
  if (depth >= DEEPEST) return -1;
  snprintf(names[depth], LONGEST, "%s", name);
  starts[depth] = clock_ns();
  return depth++;
}
int roctxRangePop(void) {
  if (!depth) return -1;
  depth--;
  const char *path = getenv("FAKE_ROCTX_TRACE");
  FILE *file = path ? fopen(path, "a") : NULL;
  if (!file) return depth;
  fprintf(file, "%d %ld %llu %llu %s\n", getpid(), syscall(SYS_gettid), (unsigned long long)starts[depth],
          (unsigned long long)clock_ns(), names[depth]);
  fclose(file);
  return depth;
}
