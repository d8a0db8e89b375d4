/* Stand-in of libamdhip64: the functions that tilelang_min calls, with the checks that the HIP API reference documents.

   Device memory is host memory.  Kernels are C functions of a shared object, FAKE_HIP_KERNELS, called with the places of their
   arguments and the launch's shape; without one nothing is computed.  Environment variables, read at each call:

   FAKE_HIP_ARCHS    architectures of the devices, as gcnArchName has them, separated by commas
   FAKE_HIP_FAIL     function=status, separated by commas: that function returns that status
   FAKE_HIP_LOG      file to which a line is appended for each call
   FAKE_HIP_TRACE    file to which a line is appended for each launch: what a profiler would see

   Events carry a clock of its own: each launch takes 10 us, each memset 1 us. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
  SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_CONFIGURATION = 9, INVALID_DEVICE_POINTER = 17, NO_DEVICE = 100,
  INVALID_DEVICE = 101, INVALID_IMAGE = 200, NO_BINARY = 209, INVALID_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600
};
enum { LAUNCH_NS = 10000, MEMSET_NS = 1000, MOST_DEVICES = 8, NAME = 256, MOST_THREADS = 1024 };

struct memory { struct memory *next; char *begin; size_t bytes; int device; };
struct event { uint32_t magic; int recorded; uint64_t time, sequence; };
struct module { uint32_t magic; int device; const unsigned char *image; };
struct function { uint32_t magic; int device; char name[NAME]; };
struct stream { uint32_t magic; int device; };

static const uint32_t EVENT = 0xE7E47, MODULE = 0x40D01E, FUNCTION = 0xF04C, STREAM = 0x57EA;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct memory *memories;
static uint64_t now_ns, sequence, completed, dispatches;
static _Thread_local int current;
static _Thread_local int capture_mode;

static void append(const char *variable, const char *format, ...) {
  const char *path = getenv(variable);
  if (!path) return;
  char line[1024];
  va_list values;
  va_start(values, format);
  int length = vsnprintf(line, sizeof line, format, values);
  va_end(values);
  FILE *file = fopen(path, "a");
  if (!file) return;
  fwrite(line, 1, (size_t)length, file);
  fclose(file);
}

static int told(const char *name) {
  append("FAKE_HIP_LOG", "%s\n", name);
  const char *text = getenv("FAKE_HIP_FAIL");
  size_t length = strlen(name);
  while (text && *text) {
    if (!strncmp(text, name, length) && text[length] == '=') return atoi(text + length + 1);
    text = strchr(text, ',');
    if (text) text++;
  }
  return SUCCESS;
}

#define ENTER(name) do { int status_ = told(name); if (status_) return status_; } while (0)

static int architectures(char found[MOST_DEVICES][NAME]) {
  const char *text = getenv("FAKE_HIP_ARCHS");
  char copy[1024];
  char all[MOST_DEVICES][NAME];
  int count = 0, kept = 0;
  snprintf(copy, sizeof copy, "%s", text ? text : "gfx942:sramecc+:xnack-");
  for (char *word = strtok(copy, ","); word && count < MOST_DEVICES; word = strtok(NULL, ","))
    snprintf(all[count++], NAME, "%s", word);
  const char *visible = getenv("HIP_VISIBLE_DEVICES");
  if (!visible) {
    memcpy(found, all, sizeof all);
    return count;
  }
  snprintf(copy, sizeof copy, "%s", visible);
  for (char *word = strtok(copy, ","); word; word = strtok(NULL, ",")) {
    int number = atoi(word);
    if (number < 0 || number >= count) break;
    memcpy(found[kept++], all[number], NAME);
  }
  return kept;
}

static int devices(void) {
  char found[MOST_DEVICES][NAME];
  return architectures(found);
}

int hipInit(unsigned flags) { ENTER("hipInit"); return flags ? INVALID_VALUE : devices() ? SUCCESS : NO_DEVICE; }
int hipRuntimeGetVersion(int *version) { ENTER("hipRuntimeGetVersion"); *version = 60443483; return SUCCESS; }
int hipGetDeviceCount(int *count) { ENTER("hipGetDeviceCount"); *count = devices(); return *count ? SUCCESS : NO_DEVICE; }
int hipGetDevice(int *device) { ENTER("hipGetDevice"); *device = current; return SUCCESS; }
int hipSetDevice(int device) {
  ENTER("hipSetDevice");
  if (device < 0 || device >= devices()) return INVALID_DEVICE;
  current = device;
  return SUCCESS;
}
int hipDeviceGetName(char *name, int length, int device) {
  ENTER("hipDeviceGetName");
  if (!name || length <= 0) return INVALID_VALUE;
  if (device < 0 || device >= devices()) return INVALID_DEVICE;
  snprintf(name, (size_t)length, "Stand-in of an AMD Instinct");
  return SUCCESS;
}
int hipDeviceGetPCIBusId(char *name, int length, int device) {
  ENTER("hipDeviceGetPCIBusId");
  if (!name || length < 13) return INVALID_VALUE;
  if (device < 0 || device >= devices()) return INVALID_DEVICE;
  snprintf(name, (size_t)length, "0000:%02x:00.0", 0xc1 + device);
  return SUCCESS;
}
int hipDeviceGetAttribute(int *value, int attribute, int device) {
  ENTER("hipDeviceGetAttribute");
  if (!value) return INVALID_VALUE;
  if (device < 0 || device >= devices()) return INVALID_DEVICE;
  switch (attribute) {
    case 19: *value = 4 << 20; return SUCCESS;   /* L2 cache of one die */
    case 63: *value = 304; return SUCCESS;       /* compute units */
    case 74: *value = 65536; return SUCCESS;     /* LDS of a block */
    default: return INVALID_VALUE;
  }
}
int hipDeviceTotalMem(size_t *bytes, int device) {
  ENTER("hipDeviceTotalMem");
  if (device < 0 || device >= devices()) return INVALID_DEVICE;
  *bytes = (size_t)192 << 30;
  return SUCCESS;
}
int hipGetDevicePropertiesR0600(void *properties, int device) {
  ENTER("hipGetDevicePropertiesR0600");
  char found[MOST_DEVICES][NAME];
  if (device < 0 || device >= architectures(found)) return INVALID_DEVICE;
  memset(properties, 0, 1472);
  snprintf(properties, NAME, "gfx of a Stand-in");
  snprintf((char *)properties + 1160, NAME, "%s", found[device]);
  return SUCCESS;
}

/* --- memory --- */

static struct memory *holding(const void *place, size_t bytes) {
  for (struct memory *one = memories; one; one = one->next)
    if ((const char *)place >= one->begin && (const char *)place + bytes <= one->begin + one->bytes) return one;
  return NULL;
}
int hipMalloc(void **place, size_t bytes) {
  ENTER("hipMalloc");
  if (!place) return INVALID_VALUE;
  if (bytes > (size_t)1 << 40) return OUT_OF_MEMORY;
  *place = NULL;
  if (!bytes) return SUCCESS;
  struct memory *one = malloc(sizeof *one);
  one->begin = aligned_alloc(256, (bytes + 255) / 256 * 256);
  one->bytes = bytes;
  one->device = current;
  memset(one->begin, 0xCD, bytes < 4096 ? bytes : 4096);
  pthread_mutex_lock(&lock);
  one->next = memories;
  memories = one;
  pthread_mutex_unlock(&lock);
  *place = one->begin;
  return SUCCESS;
}
int hipFree(void *place) {
  ENTER("hipFree");
  if (!place) return SUCCESS;
  pthread_mutex_lock(&lock);
  completed = sequence;
  for (struct memory **link = &memories; *link; link = &(*link)->next)
    if ((*link)->begin == place) {
      struct memory *one = *link;
      *link = one->next;
      pthread_mutex_unlock(&lock);
      free(one->begin);
      free(one);
      return SUCCESS;
    }
  pthread_mutex_unlock(&lock);
  return INVALID_DEVICE_POINTER;
}
int hipMemcpyHtoD(void *to, const void *from, size_t bytes) {
  ENTER("hipMemcpyHtoD");
  if (!bytes) return SUCCESS;
  if (!from || !holding(to, bytes)) return INVALID_VALUE;
  memcpy(to, from, bytes);
  return SUCCESS;
}
int hipMemcpyDtoH(void *to, const void *from, size_t bytes) {
  ENTER("hipMemcpyDtoH");
  if (!bytes) return SUCCESS;
  if (!to || !holding(from, bytes)) return INVALID_VALUE;
  memcpy(to, from, bytes);
  return SUCCESS;
}
static int stream_fits(const struct stream *stream) { return !stream || (stream->magic == STREAM && stream->device == current); }
int hipMemsetD8Async(void *to, unsigned char value, size_t bytes, struct stream *stream) {
  ENTER("hipMemsetD8Async");
  if (!stream_fits(stream)) return INVALID_HANDLE;
  if (!holding(to, bytes)) return INVALID_VALUE;
  append("FAKE_HIP_LOG", "memset %zu %d\n", bytes, value);
  now_ns += MEMSET_NS; /* the memory is not touched: it may be large, and nobody reads it */
  return SUCCESS;
}

/* --- streams and events --- */

int hipStreamCreateWithFlags(struct stream **stream, unsigned flags) {
  ENTER("hipStreamCreateWithFlags");
  if (flags > 1) return INVALID_VALUE;
  *stream = malloc(sizeof **stream);
  **stream = (struct stream){STREAM, current};
  return SUCCESS;
}
int hipStreamSynchronize(struct stream *stream) {
  ENTER("hipStreamSynchronize");
  if (!stream_fits(stream)) return INVALID_HANDLE;
  completed = sequence;
  return SUCCESS;
}
int hipDeviceSynchronize(void) {
  ENTER("hipDeviceSynchronize");
  completed = sequence;
  return SUCCESS;
}
int hipStreamIsCapturing(struct stream *stream, int *status) {
  ENTER("hipStreamIsCapturing");
  if (!stream_fits(stream)) return INVALID_HANDLE;
  *status = getenv("FAKE_HIP_CAPTURING") ? 1 : 0;
  return SUCCESS;
}
int hipThreadExchangeStreamCaptureMode(int *mode) {
  ENTER("hipThreadExchangeStreamCaptureMode");
  if (*mode < 0 || *mode > 2) return INVALID_VALUE;
  int before = capture_mode;
  capture_mode = *mode;
  *mode = before;
  return SUCCESS;
}
int hipEventCreateWithFlags(struct event **event, unsigned flags) {
  ENTER("hipEventCreateWithFlags");
  if (flags & ~0xC0000003u) return INVALID_VALUE;
  *event = calloc(1, sizeof **event);
  (*event)->magic = EVENT;
  return SUCCESS;
}
int hipEventRecord(struct event *event, struct stream *stream) {
  ENTER("hipEventRecord");
  if (!event || event->magic != EVENT || !stream_fits(stream)) return INVALID_HANDLE;
  event->recorded = 1;
  event->time = now_ns;
  event->sequence = ++sequence;
  return SUCCESS;
}
int hipEventElapsedTime(float *milliseconds, struct event *before, struct event *after) {
  ENTER("hipEventElapsedTime");
  if (!milliseconds) return INVALID_VALUE;
  if (!before || !after || before->magic != EVENT || after->magic != EVENT) return INVALID_HANDLE;
  if (!before->recorded || !after->recorded) return INVALID_HANDLE;
  if (before->sequence > completed || after->sequence > completed) return NOT_READY;
  *milliseconds = (float)((double)(after->time - before->time) / 1e6);
  return SUCCESS;
}
int hipEventDestroy(struct event *event) {
  ENTER("hipEventDestroy");
  if (!event || event->magic != EVENT) return INVALID_HANDLE;
  event->magic = 0;
  free(event);
  return SUCCESS;
}

/* --- modules --- */

static uint64_t field(const unsigned char *at, int bytes) {
  uint64_t value = 0;
  for (int i = bytes - 1; i >= 0; i--) value = value << 8 | at[i];
  return value;
}
static const char *machine(unsigned flags) { /* "User Guide for AMDGPU Backend" of LLVM, EF_AMDGPU_MACH */
  switch (flags & 0xff) {
    case 0x30: return "gfx908";
    case 0x3f: return "gfx90a";
    case 0x4c: return "gfx942";
    case 0x4f: return "gfx950";
    default: return "another";
  }
}
int hipModuleLoadData(struct module **module, const void *data) {
  ENTER("hipModuleLoadData");
  const unsigned char *image = data;
  char found[MOST_DEVICES][NAME];
  if (!module || !image) return INVALID_VALUE;
  if (memcmp(image, "\177ELF", 4) || field(image + 18, 2) != 224) return INVALID_IMAGE;
  architectures(found);
  const char *arch = machine((unsigned)field(image + 48, 4));
  if (strncmp(found[current], arch, strlen(arch))) return NO_BINARY;
  *module = malloc(sizeof **module);
  **module = (struct module){MODULE, current, image};
  return SUCCESS;
}
static int has_kernel(const unsigned char *image, const char *name) {
  char wanted[NAME + 4];
  snprintf(wanted, sizeof wanted, "%s.kd", name);
  const unsigned char *sections = image + field(image + 40, 8);
  uint64_t count = field(image + 60, 2);
  for (uint64_t i = 0; i < count; i++) {
    const unsigned char *section = sections + 64 * i;
    if (field(section + 4, 4) != 11) continue; /* SHT_DYNSYM */
    const unsigned char *symbols = image + field(section + 24, 8);
    const char *names = (const char *)image + field(sections + 64 * field(section + 40, 4) + 24, 8);
    for (uint64_t at = 0; at < field(section + 32, 8); at += 24)
      if (!strcmp(names + field(symbols + at, 4), wanted)) return 1;
  }
  return 0;
}
int hipModuleGetFunction(struct function **function, struct module *module, const char *name) {
  ENTER("hipModuleGetFunction");
  if (!function || !name) return INVALID_VALUE;
  if (!module || module->magic != MODULE) return INVALID_HANDLE;
  if (!has_kernel(module->image, name)) return NOT_FOUND;
  *function = malloc(sizeof **function);
  **function = (struct function){FUNCTION, module->device, ""};
  snprintf((*function)->name, NAME, "%s", name);
  return SUCCESS;
}
int hipModuleUnload(struct module *module) {
  ENTER("hipModuleUnload");
  if (!module || module->magic != MODULE) return INVALID_HANDLE;
  module->magic = 0;
  free(module);
  return SUCCESS;
}

static uint64_t clock_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}
int hipModuleLaunchKernel(struct function *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                          unsigned bz, unsigned shared, struct stream *stream, void **parameters, void **extra) {
  ENTER("hipModuleLaunchKernel");
  if (!function || function->magic != FUNCTION || function->device != current) return INVALID_HANDLE;
  if (!stream_fits(stream)) return INVALID_HANDLE;
  if (!gx || !gy || !gz || !bx || !by || !bz || (uint64_t)bx * by * bz > MOST_THREADS) return INVALID_CONFIGURATION;
  if ((uint64_t)gx * bx >= (uint64_t)1 << 32 || (parameters && extra) || shared > 65536) return INVALID_VALUE;
  append("FAKE_HIP_LOG", "launch %s %u %u %u %u %u %u %u %d %p\n", function->name, gx, gy, gz, bx, by, bz, shared, current,
         (void *)stream);
  uint64_t start = clock_ns();
  const char *kernels = getenv("FAKE_HIP_KERNELS");
  if (kernels) {
    void *library = dlopen(kernels, RTLD_NOW);
    void (*run)(void **, unsigned, unsigned, unsigned, unsigned) = NULL;
    if (library) *(void **)&run = dlsym(library, function->name);
    if (!run) {
      fprintf(stderr, "the stand-in has no kernel %s in %s\n", function->name, kernels);
      abort();
    }
    run(parameters, gx, gy, gz, bx);
  }
  pthread_mutex_lock(&lock);
  now_ns += LAUNCH_NS;
  sequence++;
  append("FAKE_HIP_TRACE", "%d %ld %llu %s %llu %u %u %u %u %u %u %llu %llu\n", getpid(), syscall(SYS_gettid),
         (unsigned long long)++dispatches, function->name, (unsigned long long)gx * bx, gy * by, gz * bz, bx, by, bz, shared,
         (unsigned long long)start, (unsigned long long)clock_ns());
  pthread_mutex_unlock(&lock);
  return SUCCESS;
}

const char *hipGetErrorName(int status) {
  switch (status) {
    case 0: return "hipSuccess";
    case 1: return "hipErrorInvalidValue";
    case 2: return "hipErrorOutOfMemory";
    case 9: return "hipErrorInvalidConfiguration";
    case 17: return "hipErrorInvalidDevicePointer";
    case 35: return "hipErrorInsufficientDriver";
    case 100: return "hipErrorNoDevice";
    case 101: return "hipErrorInvalidDevice";
    case 200: return "hipErrorInvalidImage";
    case 209: return "hipErrorNoBinaryForGpu";
    case 400: return "hipErrorInvalidHandle";
    case 500: return "hipErrorNotFound";
    case 600: return "hipErrorNotReady";
    case 700: return "hipErrorIllegalAddress";
    case 701: return "hipErrorLaunchOutOfResources";
    case 719: return "hipErrorLaunchFailure";
    default: return "hipErrorUnknown";
  }
}
const char *hipGetErrorString(int status) { return status == 2 ? "out of memory" : "text of the stand-in"; }
