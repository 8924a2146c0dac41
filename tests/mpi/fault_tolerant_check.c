/* Makes of counters_check a program under an Open MPI whose user-level fault mitigation is on: it
 * exports that switch, as Open MPI 5 does. */
#include <stdbool.h>

__attribute__((visibility("default"))) bool ompi_ftmpi_enabled = true;
