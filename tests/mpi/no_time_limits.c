/* Waits with a time limit wait until they are notified. So the thread of libcepheus-mpi.so that looks
 * after broadcasts beside the program never does. Linked into a test program. */
#include <pthread.h>

__attribute__((visibility("default"))) int pthread_cond_clockwait(pthread_cond_t* condition,
                                                                  pthread_mutex_t* mutex,
                                                                  clockid_t clock,
                                                                  const struct timespec* limit) {
  (void)clock;
  (void)limit;
  return pthread_cond_wait(condition, mutex);
}
