// Runs program_main of the shared object argv[1], which brings the MPI library with it, as an
// extension module of an interpreter does. This program itself has no MPI.
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  void* const plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  int (*run)(int, char**) = NULL;
  if (plugin != NULL) *(void**)&run = dlsym(plugin, "program_main");
  if (run == NULL) {
    fprintf(stderr, "plugin_host: %s\n",
            argc > 1 ? dlerror() : "usage: plugin_host OBJECT ARGUMENTS");
    return 2;
  }
  return run(argc - 1, argv + 1);
}
