// The control file and the list of calls.
#include "engine.h"

#include <dlfcn.h>
#include <stdarg.h>

static char folder[4096];

__attribute__((constructor)) static void find_folder(void) {
  Dl_info info;
  if (dladdr((void *)find_folder, &info) && info.dli_fname) {
    snprintf(folder, sizeof folder, "%s", info.dli_fname);
    char *slash = strrchr(folder, '/');
    if (slash) *slash = 0; else strcpy(folder, ".");
  }
}

static int control(line *lines, int room) {
  char path[4200], text[512];
  snprintf(path, sizeof path, "%s/control", folder);
  FILE *f = fopen(path, "re");
  int n = 0;
  while (f && n < room && fgets(text, sizeof text, f)) {
    lines[n].n = sscanf(text, "%63s %63s %63s %63s %63s", lines[n].words[0], lines[n].words[1], lines[n].words[2], lines[n].words[3], lines[n].words[4]);
    if (lines[n].n > 0 && lines[n].words[0][0] != '#') n++;
  }
  if (f) fclose(f);
  return n;
}

static scene *read_scene(void) {
  scene *s = calloc(1, sizeof *s);
  s->n = control(s->lines, LINES);
  return s;
}

// said gives the last line that begins with these words ("" fits all), or NULL.
line *said(scene *s, const char *a, const char *b, const char *c) {
  line *found = NULL;
  for (int i = 0; i < s->n; i++) {
    line *l = &s->lines[i];
    if (!strcmp(l->words[0], a) && (!*b || (l->n > 1 && !strcmp(l->words[1], b))) && (!*c || (l->n > 2 && !strcmp(l->words[2], c)))) found = l;
  }
  return found;
}

long number(scene *s, const char *a, const char *b, int word, long otherwise) {
  line *l = said(s, a, b, "");
  return l && l->n > word ? strtol(l->words[word], NULL, 0) : otherwise;
}

const char *decimal(long n) {
  static _Thread_local char text[4][24];
  static _Thread_local int next;
  char *t = text[next++ % 4];
  snprintf(t, 24, "%ld", n);
  return t;
}

void record(const char *format, ...) {
  char path[4200], text[4096];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(text, sizeof text - 1, format, args);
  va_end(args);
  if (n > (int)sizeof text - 2) n = sizeof text - 2;
  text[n++] = '\n';
  snprintf(path, sizeof path, "%s/calls", folder);
  int f = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (f >= 0) {
    if (write(f, text, n) < 0) abort();
    close(f);
  }
}

// enter begins a call: it hangs while it should, and gives what the call has to give, or 1 to go on. The lock is held then.
int enter(const char *name, scene **out) {
  scene *s = read_scene();
  while (said(s, "hang", name, "")) {
    free(s);
    usleep(1000);
    s = read_scene();
  }
  *out = s;
  pthread_mutex_lock(&lock);
  long code = number(s, "fail", name, 2, 1);
  return (int)code;
}

int leave(scene *s, int code) {
  pthread_mutex_unlock(&lock);
  free(s);
  return code;
}

// alive gives 0 where the handle is one of this life of an engine that is up.
int alive(scene *s, uintptr_t handle) {
  if (!initialized) return UNINITIALIZED;
  if (!handle) return BADPARAM;
  if (said(s, "down", "", "")) {
    for (int i = 0; i < HANDLES; i++) handles[i].dead = 1;
    return INVALID;
  }
  for (int i = 0; i < HANDLES; i++)
    if (handles[i].id == handle) return handles[i].dead || handles[i].life != number(s, "life", "", 1, 0) ? INVALID : 0;
  return BADPARAM;
}
