// The thread layer that Open MPI 5's headers need: libopenmpi-dev leaves out the part for pthreads.
// ompi_headers.h includes this file in place of that part.
//
// Sizes matter more than functions, since communicators hold mutexes: layout_matches() of
// ompi_headers.h compares them with libmpi's.
#pragma once

#include <pthread.h>
#include <sched.h>

#include "opal/class/opal_object.h"

extern "C" {

typedef pthread_mutex_t opal_thread_internal_mutex_t;
typedef pthread_cond_t opal_thread_internal_cond_t;

static inline int opal_thread_internal_mutex_init(opal_thread_internal_mutex_t* mutex, bool) {
  return pthread_mutex_init(mutex, nullptr);
}
static inline void opal_thread_internal_mutex_destroy(opal_thread_internal_mutex_t* mutex) {
  pthread_mutex_destroy(mutex);
}
static inline void opal_thread_internal_mutex_lock(opal_thread_internal_mutex_t* mutex) {
  pthread_mutex_lock(mutex);
}
static inline int opal_thread_internal_mutex_trylock(opal_thread_internal_mutex_t* mutex) {
  return pthread_mutex_trylock(mutex) == 0 ? 0 : 1;
}
static inline void opal_thread_internal_mutex_unlock(opal_thread_internal_mutex_t* mutex) {
  pthread_mutex_unlock(mutex);
}

static inline int opal_thread_internal_cond_init(opal_thread_internal_cond_t* condition) {
  return pthread_cond_init(condition, nullptr);
}
static inline void opal_thread_internal_cond_signal(opal_thread_internal_cond_t* condition) {
  pthread_cond_signal(condition);
}
static inline void opal_thread_internal_cond_destroy(opal_thread_internal_cond_t* condition) {
  pthread_cond_destroy(condition);
}

static inline void opal_thread_yield(void) { sched_yield(); }

}  // extern "C"
