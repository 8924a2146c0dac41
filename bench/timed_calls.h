/* Times a collective call, and counts its costs. A program defines a function that makes the call:
 *
 *   static void make_call(const void* what, int number);
 *   timed_calls_open(); ...; measure_calls(make_call, &what, seconds, switch_pid, "\"size\": 8");
 *
 * All ranks start a call at one moment (start_page.h), and it takes until the last has returned. A
 * rank may start late, because another one has its core. "late" is the median of the last rank's
 * lateness; calls that begin later than kMostLate are discarded, and counted in "discarded". Where
 * fewer than kLeastCalls begin in time, all count, and none is discarded.
 * The first calls are not timed.
 * Processor time is measured in calls of their own, between which ranks sleep. With costs_only there
 * are no other calls, "n" is 0, and events are counted; without it, all of them are null.
 *
 * measure_calls prints one JSON object on rank 0's standard output: {..., "median", "p10", "p90",
 * "n", "late", "discarded", "cpu", "events"}: times in microseconds. "cpu" is the processor time of
 * all ranks and of the switch process, per call. "events" are {"root", "receiver", "switch"}: of
 * rank 0, of each other rank, and of the switch, per call {"switches", "sched_waking", "sys_enter",
 * ...}; null if the kernel does not count it (event_counts.h).
 */
#pragma once

#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/event_counts.h"
#include "bench/start_page.h"

enum { kMaxCalls = 20000, kWarmUp = 3, kLeastCalls = 5, kMostBudgets = 3 };
static const double kMostLate = 5e-6; /* seconds */

typedef void (*timed_call)(const void* what, int number);

static int rank, ranks, costs_only;
static const char* program_name;
static struct start_page page;
static struct event_counts own_events, switch_events;

static void die(const char* what, const char* detail) {
  if (rank == 0) fprintf(stderr, "%s: %s%s\n", program_name, what, detail);
  MPI_Finalize();
  exit(2);
}

/* MPI_Init and all that measure_calls needs. `--costs` among the arguments: costs_only. */
static void timed_calls_open(const char* name, int* argc, char*** argv) {
  int provided;
  program_name = name;
  for (int i = 1; i < *argc; i++) costs_only |= strcmp((*argv)[i], "--costs") == 0;
  if (costs_only) own_events = event_counts_open(0); /* before there are threads */
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  page = start_page_open(rank, ranks);
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
}

/* Options that all these programs have. */
struct timed_options {
  double seconds;
  int switch_pid; /* 0: none */
  const char* plan;
};

/* The argument of option argv[*i], which it then passes. */
static char* argument_of(int argc, char** argv, int* i) {
  if (*i + 1 == argc) die("lacks its argument: ", argv[*i]);
  return argv[++*i];
}

/* Takes argv[*i] and its argument if it is such an option; 0: it is another one. */
static int take_option(struct timed_options* options, int argc, char** argv, int* i) {
  if (strcmp(argv[*i], "--costs") == 0) return 1; /* timed_calls_open() has taken it */
  if (strcmp(argv[*i], "--seconds") == 0)
    options->seconds = atof(argument_of(argc, argv, i));
  else if (strcmp(argv[*i], "--switch") == 0)
    options->switch_pid = atoi(argument_of(argc, argv, i));
  else if (strcmp(argv[*i], "--plan") == 0)
    options->plan = argument_of(argc, argv, i);
  else
    return 0;
  return 1;
}

static int compare(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double percentile(const double* sorted, int n, double p) {
  if (n == 0) return 0;
  return sorted[(int)(p * (n - 1) + 0.5)];
}

/* Of all threads of this process. */
static double own_cpu_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* Time on a core of another process's main thread. */
static double process_cpu_us(int pid) {
  if (pid == 0) return 0;
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/schedstat", pid);
  FILE* file = fopen(path, "r");
  unsigned long long ns = 0;
  if (file == NULL || fscanf(file, "%llu", &ns) != 1) die("can't read ", path);
  fclose(file);
  return (double)ns / 1e3;
}

static void set_parameter(const char* name, int value) {
  int index, count;
  MPI_T_cvar_handle handle;
  if (MPI_T_cvar_get_index(name, &index) != MPI_SUCCESS ||
      MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) != MPI_SUCCESS)
    die("this Open MPI has no parameter ", name);
  if (MPI_T_cvar_write(handle, &value) != MPI_SUCCESS) die("can't set ", name);
  MPI_T_cvar_handle_free(&handle);
}

struct times {
  double took[kMaxCalls], lateness[kMaxCalls];
  int n;
};
struct figures {
  struct times in_time, late;
};

/* Rank 0 collects the figures, and ends the loop when `budget` seconds are over. */
static void time_calls(timed_call make_call, const void* what, double budget,
                       struct figures* figures) {
  double began = 0;
  for (int call = -kWarmUp; start_page_wait(&page); call++) {
    make_call(what, call + kWarmUp);
    start_page_finish(&page);
    if (call == 0) began = seconds_now();
    if (rank != 0 || call < 0) continue;
    const struct call_times last = start_page_last(&page);
    const int in_time = last.late <= kMostLate;
    struct times* all = in_time ? &figures->in_time : &figures->late;
    all->took[all->n] = last.slowest * 1e6;
    all->lateness[all->n++] = last.late * 1e6;
    const double spent = seconds_now() - began;
    const int enough = spent >= budget && figures->in_time.n >= kLeastCalls;
    const int calls = figures->in_time.n + figures->late.n;
    if (enough || calls == kMaxCalls || (spent > kMostBudgets * budget && calls >= kLeastCalls))
      start_page_stop(&page);
  }
}

/* The calls that count. */
static struct times* choose(struct figures* figures) {
  struct times *chosen = &figures->in_time, *late = &figures->late;
  if (chosen->n >= kLeastCalls) return chosen;
  memcpy(chosen->took + chosen->n, late->took, sizeof(double) * (size_t)late->n);
  memcpy(chosen->lateness + chosen->n, late->lateness, sizeof(double) * (size_t)late->n);
  chosen->n += late->n;
  late->n = 0;
  return chosen;
}

/* Per call. */
struct costs {
  double cpu; /* microseconds of all processes */
  double root[kEvents], receiver[kEvents], of_switch[kEvents];
};

static void print_events(const char* process, const double* events) {
  printf("\"%s\": {", process);
  for (int i = 0; i < kEvents; i++) {
    const char* const slash = strchr(kEventNames[i], '/');
    printf("%s\"%s\": ", i > 0 ? ", " : "", slash != NULL ? slash + 1 : kEventNames[i]);
    if (isnan(events[i]))
      printf("null");
    else
      printf("%.2f", events[i]);
  }
  printf("}");
}

/* Of those counted since `before`, how many each of `calls` calls had. */
static void events_per_call(const struct event_counts* counts, const double* before, int calls,
                            double* events) {
  event_counts_read(counts, events);
  for (int i = 0; i < kEvents; i++) events[i] = (events[i] - before[i]) / calls;
}

/* On rank 0. */
static struct costs costs_per_call(timed_call make_call, const void* what, double budget,
                                   int switch_pid) {
  struct costs costs;
  double own = 0, of_switch = 0, here[kEvents], all[kEvents], before[kEvents],
         before_there[kEvents];
  int calls = 0;
  event_counts_read(&own_events, before);
  event_counts_read(&switch_events, before_there);
  page.sleeps = 1;
  if (rank == 0) of_switch = process_cpu_us(switch_pid);
  const double began = seconds_now();
  event_counts_go(&switch_events, 1);
  while (start_page_wait(&page)) {
    event_counts_go(&own_events, 1);
    const double cpu = own_cpu_us();
    make_call(what, calls);
    own += own_cpu_us() - cpu;
    event_counts_go(&own_events, 0);
    start_page_finish(&page);
    calls++;
    if (rank == 0 && calls >= kLeastCalls && seconds_now() - began >= budget / 2)
      start_page_stop(&page);
  }
  event_counts_go(&switch_events, 0);
  page.sleeps = 0;
  if (rank == 0) own += process_cpu_us(switch_pid) - of_switch;
  MPI_Reduce(&own, &costs.cpu, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  costs.cpu /= calls;
  events_per_call(&own_events, before, calls, here);
  events_per_call(&switch_events, before_there, calls, costs.of_switch);
  MPI_Reduce(here, all, kEvents, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  for (int i = 0; i < kEvents; i++) {
    costs.root[i] = here[i];
    costs.receiver[i] = ranks > 1 ? (all[i] - here[i]) / (ranks - 1) : NAN;
  }
  return costs;
}

/* `head` begins the JSON object. */
static void measure_calls(timed_call make_call, const void* what, double budget, int switch_pid,
                          const char* head) {
  static struct figures figures;
  figures.in_time.n = figures.late.n = 0;
  if (!costs_only) time_calls(make_call, what, budget, &figures);
  const struct costs costs = costs_per_call(make_call, what, budget, switch_pid);
  if (rank != 0) return;
  struct times* times = choose(&figures);
  const int n = times->n;
  qsort(times->took, (size_t)n, sizeof(double), compare);
  qsort(times->lateness, (size_t)n, sizeof(double), compare);
  printf(
      "{%s, \"median\": %.2f, \"p10\": %.2f, \"p90\": %.2f, \"n\": %d, \"late\": %.2f, "
      "\"discarded\": %d, \"cpu\": %.2f, \"events\": {",
      head, percentile(times->took, n, 0.5), percentile(times->took, n, 0.1),
      percentile(times->took, n, 0.9), n, percentile(times->lateness, n, 0.5), figures.late.n,
      costs.cpu);
  print_events("root", costs.root);
  printf(", ");
  print_events("receiver", costs.receiver);
  printf(", ");
  print_events("switch", costs.of_switch);
  printf("}}\n");
  fflush(stdout);
}
