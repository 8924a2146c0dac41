/* Files that let a test control a program. */
#ifndef CEPHEUS_TESTS_MPI_FILE_WATCH_H
#define CEPHEUS_TESTS_MPI_FILE_WATCH_H

#include <limits.h>
#include <mpi.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

/* Waits until `file` exists, `milliseconds` at most. Returns whether it does. */
static inline int await_file(const char* file, int milliseconds) {
  char directory[PATH_MAX] = ".";
  const char* const slash = strrchr(file, '/');
  if (slash != NULL) snprintf(directory, sizeof directory, "%.*s/", (int)(slash - file), file);
  const int watch = inotify_init1(IN_CLOEXEC);
  inotify_add_watch(watch, directory, IN_CREATE | IN_MOVED_TO);
  const double end = MPI_Wtime() + milliseconds * 1e-3;
  struct pollfd event = {watch, POLLIN, 0};
  char news[sizeof(struct inotify_event) + NAME_MAX + 1];
  int left = milliseconds, exists;
  while (!(exists = access(file, F_OK) == 0) && left > 0) {
    if (poll(&event, 1, left) > 0 && read(watch, news, sizeof news) < 0) break;
    left = (int)((end - MPI_Wtime()) * 1e3);
  }
  close(watch);
  return exists;
}

static inline void must_come(const char* file) {
  const int most = 60000; /* milliseconds */
  if (await_file(file, most)) return;
  fprintf(stderr, "%s did not appear within %d s\n", file, most / 1000);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

#endif
