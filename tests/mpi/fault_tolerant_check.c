/* Turns counters_check into a program of an Open MPI with user-level fault mitigation: it exports
 * that switch, as Open MPI 5 does. */
#include <stdbool.h>

__attribute__((visibility("default"))) bool ompi_ftmpi_enabled = true;
