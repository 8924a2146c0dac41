// Each function is the definition behind this library, or that of an MPI library which a plug-in
// has loaded for itself. MPI's ABI is known by its version text; MPI 5's standard ABI is refused,
// because its handles differ. If one function is missing, nothing is served.
#include "pmpi/calls.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace cepheus::pmpi {

namespace {

// In the MPI library that a plug-in of the program has loaded for itself, as Python's modules do.
void* find_in_a_local_library(const char* name) {
  for (const char* library : kLibraries) {
    void* const handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) continue;
    void* const found = dlsym(handle, name);
    (void)dlclose(handle);
    if (found != nullptr) return found;
  }
  return nullptr;
}

}  // namespace

void* next_definition(const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  return found != nullptr ? found : find_in_a_local_library(name);
}

bool is_next_a_tools(const std::string& name) {
  Dl_info next{}, mpis{};
  return dladdr(next_definition(("MPI_" + name).c_str()), &next) != 0 &&
         dladdr(next_definition(("PMPI_" + name).c_str()), &mpis) != 0 &&
         next.dli_fbase != mpis.dli_fbase;
}

namespace {

template <typename Function>
bool find(const char* name, Function*& out) {
  out = reinterpret_cast<Function*>(next_definition(name));
  return out != nullptr;
}

// Libraries of MPI 5's standard ABI have other handles.
bool has_standard_abi() {
  int (*get_version)(int*, int*) = nullptr;
  int major = 0, minor = 0;
  return find("PMPI_Abi_get_version", get_version) && get_version(&major, &minor) == kSuccess &&
         major >= 1;
}

bool has_our_abi() {
  if (has_standard_abi()) return false;
  int (*get_library_version)(char*, int*) = nullptr;
  if (!find("PMPI_Get_library_version", get_library_version)) return false;
  std::vector<char> text(kMaxLibraryVersion + 1);
  int length = 0;
  if (get_library_version(text.data(), &length) != kSuccess) return false;
  const std::string_view version(text.data());
  return std::ranges::any_of(
      kVersions, [&](std::string_view each) { return version.find(each) != version.npos; });
}

// If the program is linked to the object, it may have a copy of it, and MPI uses that copy. So the
// program comes first.
void* find_object(const char* symbol) {
  void* const found = dlsym(RTLD_DEFAULT, symbol);
  return found != nullptr ? found : find_in_a_local_library(symbol);
}

}  // namespace

bool is_fault_tolerant() {
  if (kFaultTolerance == nullptr) return false;
  const auto* const enabled = static_cast<const bool*>(find_object(kFaultTolerance));
  return enabled != nullptr && *enabled;
}

Calls& calls() {
  static Calls table{};
  return table;
}

bool find_calls() {
  if (!has_our_abi() || !find_handles(find_object)) return false;
  Calls& c = calls();
  bool found = true;
#define FIND(name) found = find("PMPI_" #name, c.name) && found
  FIND(Abort);
  FIND(Allgather);
  FIND(Allreduce);
  FIND(Cancel);
  FIND(Comm_call_errhandler);
  FIND(Comm_create);
  FIND(Comm_create_keyval);
  FIND(Comm_dup);
  FIND(Comm_free);
  FIND(Comm_get_attr);
  FIND(Comm_get_name);
  FIND(Comm_group);
  FIND(Comm_rank);
  FIND(Comm_set_attr);
  FIND(Comm_set_errhandler);
  FIND(Comm_size);
  FIND(Comm_split_type);
  FIND(Comm_test_inter);
  FIND(Error_class);
  FIND(Get_elements_x);
  FIND(Grequest_complete);
  FIND(Grequest_start);
  FIND(Group_free);
  FIND(Group_translate_ranks);
  FIND(Iprobe);
  FIND(Irecv);
  FIND(Isend);
  FIND(Op_free);
  FIND(Pack);
  FIND(Pack_size);
  FIND(Query_thread);
  FIND(Reduce_local);
  FIND(Request_free);
  FIND(Test);
  FIND(Testany);
  FIND(Type_commit);
  FIND(Type_create_hindexed);
  FIND(Type_free);
  FIND(Type_get_contents);
  FIND(Type_get_envelope);
  FIND(Type_get_extent_x);
  FIND(Type_get_true_extent_x);
  FIND(Type_size_x);
  FIND(Unpack);
#undef FIND
  (void)find("PMPI_Type_get_envelope_c", c.Type_get_envelope_c);
  return found;
}

bool component_serves() {
  std::string path;
  (void)dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* out) {
        const bool is_it = std::string_view(object->dlpi_name).ends_with("/mca_coll_cepheus.so");
        if (is_it) *static_cast<std::string*>(out) = object->dlpi_name;
        return is_it ? 1 : 0;
      },
      &path);
  void* const component = path.empty() ? nullptr : dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (component == nullptr) return false;
  const auto serves = reinterpret_cast<int (*)()>(dlsym(component, "mca_coll_cepheus_serves"));
  const bool result = serves == nullptr || serves() != 0;
  (void)dlclose(component);
  return result;
}

}  // namespace cepheus::pmpi
