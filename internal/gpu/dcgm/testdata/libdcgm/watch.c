// Groups, field groups and watches. A connection has its own, and they end with it.
#include "engine.h"

int dcgmGroupCreate(uintptr_t handle, uint32_t kind, const char *name, uintptr_t *group) {
  record("dcgmGroupCreate kind=%u name=%s", kind, name);
  BEGIN("dcgmGroupCreate", handle);
  for (int i = 0; i < GROUPS; i++) {
    if (groups[i].id) continue;
    groups[i].id = *group = next_id++;
    groups[i].handle = handle;
    groups[i].n = 0;
    return leave(s, 0);
  }
  return leave(s, MAX_LIMIT);
}

int dcgmGroupAddEntity(uintptr_t handle, uintptr_t group, uint32_t entity_group, uint32_t entity) {
  record("dcgmGroupAddEntity %u:%u", entity_group, entity);
  BEGIN("dcgmGroupAddEntity", handle);
  pair e = {entity_group, entity};
  for (int i = 0; i < GROUPS; i++) {
    if (groups[i].id != group || groups[i].handle != handle || groups[i].n == MEMBERS || !exists(s, e)) continue;
    groups[i].members[groups[i].n++] = e;
    return leave(s, 0);
  }
  return leave(s, BADPARAM);
}

int dcgmGroupDestroy(uintptr_t handle, uintptr_t group) {
  BEGIN("dcgmGroupDestroy", handle);
  for (int i = 0; i < GROUPS; i++)
    if (groups[i].id == group && groups[i].handle == handle) {
      groups[i].id = groups[i].handle = 0;
      return leave(s, 0);
    }
  return leave(s, BADPARAM);
}

int dcgmFieldGroupCreate(uintptr_t handle, int n, const uint16_t *fields, const char *name, uintptr_t *group) {
  record("dcgmFieldGroupCreate n=%d first=%u name=%s", n, n > 0 ? fields[0] : 0, name);
  BEGIN("dcgmFieldGroupCreate", handle);
  if (n < 1 || n > FIELDS) return leave(s, BADPARAM);
  for (int i = 0; i < n; i++)
    if (said(s, "unknown", decimal(fields[i]), "")) return leave(s, BADPARAM);
  for (int i = 0; i < GROUPS; i++)
    if (field_groups[i].id && !strcmp(field_groups[i].name, name)) return leave(s, DUPLICATE);
  for (int i = 0; i < GROUPS; i++) {
    if (field_groups[i].id) continue;
    field_groups[i].id = *group = next_id++;
    field_groups[i].handle = handle;
    field_groups[i].n = n;
    memcpy(field_groups[i].fields, fields, n * sizeof *fields);
    snprintf(field_groups[i].name, sizeof field_groups[i].name, "%s", name);
    return leave(s, 0);
  }
  return leave(s, MAX_LIMIT);
}

int dcgmFieldGroupDestroy(uintptr_t handle, uintptr_t group) {
  BEGIN("dcgmFieldGroupDestroy", handle);
  for (int i = 0; i < GROUPS; i++)
    if (field_groups[i].id == group && field_groups[i].handle == handle) {
      field_groups[i].id = field_groups[i].handle = 0;
      return leave(s, 0);
    }
  return leave(s, BADPARAM);
}

#ifndef NO_WATCH_FIELDS
int dcgmWatchFields(uintptr_t handle, uintptr_t group, uintptr_t fields, int64_t period_us, double keep_s, int samples) {
  int g, f, profiling = 0;
  BEGIN("dcgmWatchFields", handle);
  for (g = 0; g < GROUPS && (groups[g].id != group || groups[g].handle != handle); g++) {}
  for (f = 0; f < GROUPS && (field_groups[f].id != fields || field_groups[f].handle != handle); f++) {}
  if (g == GROUPS || f == GROUPS || period_us < 1) return leave(s, BADPARAM);
  for (int i = 0; i < field_groups[f].n; i++) profiling += field_groups[f].fields[i] >= 1001 && field_groups[f].fields[i] < 1200;
  record("dcgmWatchFields entities=%d fields=%d profiling=%d period=%lld keep=%g samples=%d", groups[g].n, field_groups[f].n, profiling, (long long)period_us, keep_s, samples);
  for (int i = 0; i < groups[g].n; i++) {
    pair e = groups[g].members[i];
    line *l = said(s, "unwatchable", decimal(e.id), "");
    if (l && e.group == GPU) return leave(s, atoi(l->words[2]));
    l = said(s, "noprofiling", "", "");
    if (l && profiling && (l->n < 3 || (e.group == GPU && strtoul(l->words[2], NULL, 0) == e.id))) return leave(s, atoi(l->words[1]));
  }
  for (int i = 0; i < 4 * GROUPS; i++) {
    if (watches[i].handle) continue;
    watches[i].handle = handle;
    watches[i].group = group;
    watches[i].fields = fields;
    return leave(s, 0);
  }
  return leave(s, MAX_LIMIT);
}
#endif

int dcgmUpdateAllFields(uintptr_t handle, int wait) {
  record("dcgmUpdateAllFields wait=%d", wait);
  BEGIN("dcgmUpdateAllFields", handle);
  return leave(s, 0);
}
