// A libdcgm.so.4 for tests: it plays an nv-hostengine and its GPUs as the file "control" beside it says, which is read
// at each call, and writes each call into the file "calls". Its structs are written from abi.csv.
//
//   cc -shared -fPIC -pthread -Wl,-soname,libdcgm.so.4,-Bsymbolic -o DIR/libdcgm.so.4 *.c
//
// Lines of the control file (the last word that fits wins; # begins a comment):
//   gpus N                     the GPUs 0 to N-1 (2)
//   mig GPU INSTANCE ENTITY PROFILE   a MIG instance, with a compute instance of its own
//   lost GPU                   it fell off the bus: blanks with a fresh time, but for the last XID; no attributes
//   unwatchable GPU CODE       dcgmWatchFields with it in the group gives CODE
//   noprofiling CODE [GPU]     the same for fields from 1001 on [with GPU in the group]
//   unknown FIELD              no field group with it can be made (-1)
//   unanswered FIELD           a call for its values fails (-3)
//   omitted FIELD              its places in the answer are not written to
//   value ENTITY FIELD WORD    GPU or * for the entity, number or * for the field; WORD: a number, blank, notfound,
//                              notsupported, notpermitted, the same with 32 at its end, status:CODE, type:LETTER, nan,
//                              double:NUMBER for another type than the field has
//   age FIELD SECONDS          how old samples are; FIELD may be *
//   layout VERSION             the version that values have
//   reverse                    values come in reverse order
//   down                       nothing listens; what was connected is not
//   life N                     another number than before: the engine was started anew, and knows no handle
//   refused                    a login is refused: connecting gives 0 and a dead handle
//   fail FUNCTION CODE         what the function gives
//   hang FUNCTION              it does not come back while the line is there
//   versions LIBRARY ENGINE    (4.6.0 4.6.0)
//
// Without dcgmConnect_v3, as before 4.5.0: -DNO_CONNECT_V3. Without dcgmWatchFields: -DNO_WATCH_FIELDS.
#include "engine.h"

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int initialized;
uintptr_t next_id = 100;
struct handle handles[HANDLES];
struct group groups[GROUPS];
struct field_group field_groups[GROUPS];
struct watch watches[4 * GROUPS];

static int wake[2];
static pthread_t thread;

// Connecting.

static void *serve(void *unused) { // as the library's own thread for its sockets
  char c;
  (void)unused;
  while (read(wake[0], &c, 1) < 0) {}
  return NULL;
}

int dcgmInit(void) {
  scene *s;
  int code = enter("dcgmInit", &s);
  record("dcgmInit");
  if (code != 1) return leave(s, code);
  if (!initialized) {
    if (pipe2(wake, O_CLOEXEC) || pthread_create(&thread, NULL, serve, NULL)) return leave(s, GENERIC);
    pthread_setname_np(thread, "dcgm-stub");
    initialized = 1;
  }
  return leave(s, 0);
}

int dcgmShutdown(void) {
  scene *s;
  int code = enter("dcgmShutdown", &s);
  int open_handles = 0, open_groups = 0;
  for (int i = 0; i < HANDLES; i++) open_handles += handles[i].id != 0;
  for (int i = 0; i < GROUPS; i++) open_groups += (groups[i].id != 0) + (field_groups[i].id != 0);
  record("dcgmShutdown handles=%d groups=%d", open_handles, open_groups);
  if (code != 1) return leave(s, code);
  if (initialized) {
    close(wake[1]);
    pthread_join(thread, NULL);
    close(wake[0]);
    initialized = 0;
  }
  return leave(s, 0);
}

static void forget(uintptr_t handle) {
  for (int i = 0; i < GROUPS; i++) {
    if (groups[i].handle == handle) groups[i].id = groups[i].handle = 0;
    if (field_groups[i].handle == handle) field_groups[i].id = field_groups[i].handle = 0;
  }
  for (int i = 0; i < 4 * GROUPS; i++)
    if (watches[i].handle == handle) watches[i].handle = 0;
}

static int connect_engine(const char *name, const char *address, int version_ok, uint32_t timeout_ms, uint32_t unix_socket, uintptr_t *handle) {
  scene *s;
  int code = enter(name, &s);
  record("%s address=%s timeout=%u unix=%u", name, address, timeout_ms, unix_socket);
  if (code != 1) return leave(s, code);
  if (!initialized) return leave(s, UNINITIALIZED);
  if (!version_ok) return leave(s, VERSION);
  if (said(s, "down", "", "")) return leave(s, INVALID);
  for (int i = 0; i < HANDLES; i++) {
    if (handles[i].id) continue;
    handles[i].id = *handle = next_id++;
    handles[i].dead = said(s, "refused", "", "") != NULL;
    handles[i].life = number(s, "life", "", 1, 0);
    handles[i].socket = open("/dev/null", O_RDONLY | O_CLOEXEC);
    handles[i].memory = memset(malloc(1 << 20), 1, 1 << 20);
    return leave(s, 0);
  }
  return leave(s, MAX_LIMIT);
}

int dcgmConnect_v2(const char *address, connect_v2 *p, uintptr_t *handle) {
  return connect_engine("dcgmConnect_v2", address, p->version == (sizeof *p | 2 << 24), p->timeout_ms, p->unix_socket, handle);
}

#ifndef NO_CONNECT_V3
int dcgmConnect_v3(const char *address, connect_v3 *p, uintptr_t *handle) {
  return connect_engine("dcgmConnect_v3", address, p->version == (sizeof *p | 1 << 24), p->timeout_ms, 0, handle);
}
#endif

int dcgmDisconnect(uintptr_t handle) {
  scene *s;
  int code = enter("dcgmDisconnect", &s);
  int held = 0, field_groups_held = 0;
  for (int i = 0; i < GROUPS; i++) {
    held += groups[i].id && groups[i].handle == handle;
    field_groups_held += field_groups[i].id && field_groups[i].handle == handle;
  }
  record("dcgmDisconnect groups=%d fieldgroups=%d", held, field_groups_held);
  if (code != 1) return leave(s, code);
  if (!handle) return leave(s, BADPARAM);
  for (int i = 0; i < HANDLES; i++) {
    if (handles[i].id != handle) continue;
    forget(handle);
    close(handles[i].socket);
    free(handles[i].memory);
    handles[i].id = 0;
    return leave(s, 0);
  }
  return leave(s, BADPARAM);
}

// What there is.

static int gpus(scene *s) { return (int)number(s, "gpus", "", 1, 2); }

int exists(scene *s, pair e) {
  if (e.group == GPU) return (int)e.id < gpus(s);
  for (int i = 0; i < s->n; i++)
    if (!strcmp(s->lines[i].words[0], "mig") && e.group == INSTANCE && strtoul(s->lines[i].words[3], NULL, 0) == e.id) return 1;
  return 0;
}

int dcgmGetAllSupportedDevices(uintptr_t handle, uint32_t *ids, int *count) {
  record("dcgmGetAllSupportedDevices");
  BEGIN("dcgmGetAllSupportedDevices", handle);
  *count = gpus(s);
  for (int i = 0; i < *count; i++) ids[i] = (uint32_t)i;
  return leave(s, 0);
}

int dcgmGetDeviceAttributes(uintptr_t handle, uint32_t gpu, attributes *a) {
  BEGIN("dcgmGetDeviceAttributes", handle);
  if (a->version != (sizeof *a | 3 << 24)) return leave(s, VERSION);
  if ((int)gpu >= gpus(s)) return leave(s, BADPARAM);
  if (said(s, "lost", decimal(gpu), "")) return leave(s, LOST);
  snprintf(a->ids.uuid, 256, "GPU-%08x-0000-0000-0000-000000000000", gpu);
  snprintf(a->ids.name, 256, "NVIDIA H100 80GB HBM3");
  snprintf(a->ids.serial, 256, "<<<NOT_SUPPORTED>>>");
  return leave(s, 0);
}

int dcgmGetGpuInstanceHierarchy(uintptr_t handle, mig_hierarchy *h) {
  BEGIN("dcgmGetGpuInstanceHierarchy", handle);
  if (h->version != (sizeof *h | 2 << 24)) return leave(s, VERSION);
  h->count = 0;
  for (int i = 0; i < s->n; i++) {
    line *l = &s->lines[i];
    if (strcmp(l->words[0], "mig")) continue;
    uint32_t gpu = (uint32_t)strtoul(l->words[1], NULL, 0), instance = (uint32_t)strtoul(l->words[2], NULL, 0), entity = (uint32_t)strtoul(l->words[3], NULL, 0);
    mig_entry *e = &h->list[h->count++];
    *e = (mig_entry){{INSTANCE, entity}, {GPU, gpu}, {"", gpu, instance, 0, 19, 1}};
    snprintf(e->info.uuid, 128, "GPU-%08x-0000-0000-0000-000000000000", gpu);
    h->list[h->count] = *e;
    h->list[h->count].entity = (pair){COMPUTE, entity};
    h->list[h->count++].parent = (pair){INSTANCE, entity};
  }
  return leave(s, 0);
}
