/* The MPI_T performance variables with "cepheus" in their names: one call starts the count, another
 * prints it. */
#ifndef CEPHEUS_TESTS_MPI_VARIABLES_H
#define CEPHEUS_TESTS_MPI_VARIABLES_H

#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { kMostVariables = 64 };

struct variable {
  char name[256];
  MPI_T_pvar_handle handle;
};
static struct variable variables[kMostVariables];
static int variables_found;
static MPI_T_pvar_session variables_session;

/* Counters count from here on (MPI 3.1, 14.3.7). After MPI_T_init_thread. */
static inline void watch_variables(void) {
  int all = 0;
  MPI_T_pvar_session_create(&variables_session);
  MPI_T_pvar_get_num(&all);
  for (int i = 0; i < all && variables_found < kMostVariables; i++) {
    struct variable* const it = &variables[variables_found];
    int size = sizeof it->name, none = 0, count = 0;
    int verbosity, var_class, bind, readonly, continuous, atomic;
    MPI_Datatype type;
    MPI_T_enum values;
    if (MPI_T_pvar_get_info(i, it->name, &size, &verbosity, &var_class, &type, &values, NULL, &none,
                            &bind, &readonly, &continuous, &atomic) != MPI_SUCCESS)
      continue;
    if (strstr(it->name, "cepheus") == NULL) continue;
    MPI_T_pvar_handle_alloc(variables_session, i, NULL, &it->handle, &count);
    variables_found++;
  }
}

/* "NAME VALUE" a line. */
static inline void print_variables(void) {
  for (int i = 0; i < variables_found; i++) {
    unsigned long long value = 0;
    MPI_T_pvar_read(variables_session, variables[i].handle, &value);
    MPI_T_pvar_handle_free(variables_session, &variables[i].handle);
    printf("%s %llu\n", variables[i].name, value);
  }
  MPI_T_pvar_session_free(&variables_session);
}

#endif
