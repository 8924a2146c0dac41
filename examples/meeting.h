/* How the processes of an example find each other: files in a directory that they share. */
#pragma once

#include <mcast/mcast.h>
#include <stdio.h>
#include <stdlib.h>

enum { kMostRanks = 64 };

static mcast_context_h context;

static void check(mcast_status_t status, const char* what) {
  if (status >= 0) return;
  fprintf(stderr, "%s: %s: %s\n", what, mcast_status_string(status), mcast_last_error());
  exit(1);
}

/* They are RANK RANKS DIRECTORY [DEVICE]. */
static inline void check_arguments(int argc, char** argv) {
  const int rank = argc > 1 ? atoi(argv[1]) : -1, ranks = argc > 2 ? atoi(argv[2]) : 0;
  if (argc >= 4 && argc <= 5 && ranks >= 2 && ranks <= kMostRanks && rank >= 0 && rank < ranks)
    return;
  fprintf(stderr,
          "usage: %s RANK RANKS DIRECTORY [DEVICE]\n"
          "RANKS is 2 to %d, RANK is 0 to RANKS - 1, and all ranks share the empty DIRECTORY\n",
          argv[0], kMostRanks);
  exit(2);
}

static inline void open_context(const char* device) {
  mcast_context_params_t params = MCAST_CONTEXT_PARAMS_INIT;
  params.register_timeout_ms = 60000; /* on an emulated machine, too */
  params.progress_timeout_ms = 60000;
  params.device = device;
  check(mcast_context_create(&params, &context), "mcast_context_create");
}

typedef struct {
  mcast_op_t op;
  int is_done;
  uint32_t imm;
} operation_t;

static inline void on_done(mcast_op_t* op, mcast_status_t status, size_t length, uint32_t imm) {
  (void)length;
  check(status, "operation");
  ((operation_t*)op)->is_done = 1;
  ((operation_t*)op)->imm = imm;
}

static inline operation_t begun(void) {
  const operation_t operation = {{on_done, NULL}, 0, 0};
  return operation;
}

static inline void wait_for(const operation_t* operation) {
  while (!operation->is_done) mcast_progress(context);
}

static void file_of(char* path, size_t size, const char* directory, const char* what, int rank) {
  snprintf(path, size, "%s/%s%d", directory, what, rank);
}

/* Written under another name first: readers find the whole file or none. */
static void leave_bytes(const char* directory, const char* what, int rank, const void* bytes,
                        size_t size) {
  char path[512], draft[520];
  file_of(path, sizeof path, directory, what, rank);
  snprintf(draft, sizeof draft, "%s.new", path);
  FILE* file = fopen(draft, "wb");
  if (file == NULL || fwrite(bytes, size, 1, file) != 1 || fclose(file) != 0 ||
      rename(draft, path) != 0) {
    perror(draft);
    exit(1);
  }
}

static void find_bytes(const char* directory, const char* what, int rank, void* bytes,
                       size_t size) {
  char path[512];
  file_of(path, sizeof path, directory, what, rank);
  FILE* file;
  while ((file = fopen(path, "rb")) == NULL) mcast_progress(context);
  if (fread(bytes, size, 1, file) != 1) exit(1);
  fclose(file);
}

static inline void leave(const char* directory, const char* what, int rank,
                         const mcast_member_t* name) {
  leave_bytes(directory, what, rank, name, sizeof *name);
}

static inline mcast_member_t find(const char* directory, const char* what, int rank) {
  mcast_member_t name;
  find_bytes(directory, what, rank, &name, sizeof name);
  return name;
}

static inline void wait_until_active(mcast_group_h group) {
  mcast_status_t status;
  while ((status = mcast_group_test(group)) == MCAST_INPROGRESS) mcast_progress(context);
  check(status, "mcast_group_test");
}

/* `group` stands: rank 0 leads it, of all that have left their names in `directory`. */
static inline void set_up(mcast_group_h group, int rank, int ranks, const char* directory) {
  mcast_member_t names[kMostRanks];
  check(mcast_group_member(group, &names[rank]), "mcast_group_member");
  leave(directory, "name", rank, &names[rank]);
  if (rank == 0) {
    for (int i = 1; i < ranks; ++i) names[i] = find(directory, "name", i);
    check(mcast_group_lead(group, names, (size_t)ranks), "mcast_group_lead");
  }
  wait_until_active(group);
}

/* Waits until all members are done. A member must acknowledge the last byte again if its
 * acknowledgement was lost, and the group ends for all when its leader destroys it. */
static inline void finish(mcast_group_h group, int rank, int ranks, const char* directory) {
  mcast_member_t name;
  check(mcast_group_member(group, &name), "mcast_group_member");
  leave(directory, "done", rank, &name);
  for (int i = 0; i < ranks; ++i) find(directory, "done", i);
  mcast_group_destroy(group);
}
