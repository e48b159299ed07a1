// The layouts, numbers and shared state of the library that the tests load; libdcgm.c tells about it.
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

typedef struct { uint32_t group, id; } pair;
typedef struct {
  uint32_t version, group, id;
  uint16_t field, type;
  int32_t status;
  uint32_t unused;
  int64_t ts;
  union { int64_t i64; double dbl; char str[256]; char blob[4096]; } value;
} field_value;
typedef struct { uint32_t version, persist, timeout_ms, unix_socket; } connect_v2;
typedef struct { uint32_t version, persist, timeout_ms; } connect_v3;
typedef struct {
  uint32_t version;
  char brand[256], name[256], bus[256], serial[256], uuid[256], vbios[256], inforom[256];
  uint32_t pci_device, pci_subsystem;
  char driver[256];
  uint32_t virtualization;
} identifiers;
typedef struct {
  uint32_t version;
  char clocks[3080], thermals[12], power[24];
  identifiers ids;
  char memory[20], settings[16];
} attributes;
typedef struct { char uuid[128]; uint32_t gpu, instance, compute, profile, slices; } mig_info;
typedef struct { pair entity, parent; mig_info info; } mig_entry;
typedef struct { uint32_t version, count; mig_entry list[448]; } mig_hierarchy;
typedef struct { uint32_t version; char build[512]; } version_info;

_Static_assert(sizeof(field_value) == 4128 && offsetof(field_value, ts) == 24 && offsetof(field_value, value) == 32, "field value");
_Static_assert(sizeof(attributes) == 5220 && offsetof(attributes, ids) == 3120, "attributes");
_Static_assert(sizeof(identifiers) == 2064 && offsetof(identifiers, uuid) == 1028 && offsetof(identifiers, driver) == 1804, "identifiers");
_Static_assert(sizeof(mig_entry) == 164 && sizeof(mig_hierarchy) == 73480, "hierarchy");
_Static_assert(sizeof(version_info) == 516, "version info");

enum { GPU = 1, INSTANCE = 4, COMPUTE = 5 };
enum { HANDLES = 8, GROUPS = 64, MEMBERS = 1024, FIELDS = 128 }; // an engine has room for 64 groups
enum { BADPARAM = -1, GENERIC = -3, UNINITIALIZED = -10, VERSION = -12, NO_DATA = -14, NOT_WATCHED = -16, LOST = -18, INVALID = -21, MAX_LIMIT = -24, DUPLICATE = -26 };

// What the engine holds. The lock is not held while a call hangs.
extern pthread_mutex_t lock;
extern int initialized;
extern uintptr_t next_id;
extern struct handle { uintptr_t id; int dead, socket; long life; char *memory; } handles[HANDLES];
extern struct group { uintptr_t id, handle; int n; pair members[MEMBERS]; } groups[GROUPS];
extern struct field_group { uintptr_t id, handle; int n; uint16_t fields[FIELDS]; char name[256]; } field_groups[GROUPS];
extern struct watch { uintptr_t handle, group, fields; } watches[4 * GROUPS];

// The control file, as it is at one call.
typedef struct { int n; char words[5][64]; } line;
enum { LINES = 128 };
typedef struct { int n; line lines[LINES]; } scene;

line *said(scene *s, const char *a, const char *b, const char *c);
long number(scene *s, const char *a, const char *b, int word, long otherwise);
const char *decimal(long n);
void record(const char *format, ...);
int enter(const char *name, scene **out);
int leave(scene *s, int code);
int alive(scene *s, uintptr_t handle);
int exists(scene *s, pair e);

#define BEGIN(name, handle)                              \
  scene *s;                                            \
  int code = enter(name, &s);                          \
  if (code != 1) return leave(s, code);                \
  if ((code = alive(s, handle)) != 0) return leave(s, code)
