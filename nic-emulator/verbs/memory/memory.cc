// Registration: check the access flags, check that the memory is mapped and accessible, install the
// memory guard, get keys from the engine. No page is pinned, so memory may go later: memory_guard.h
// detects that.
//
// Refused: access flags that the engine lacks and DMA buffers (EOPNOTSUPP), remote writes or
// atomics without local writes (EINVAL), memory that is not there (EFAULT). A domain with users
// can't be freed (EBUSY). A failed ibv_rereg_mr leaves the region as it was.
#include "nic-emulator/verbs/memory/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

#include "nic-emulator/verbs/memory/chosen_key.h"
#include "nic-emulator/verbs/memory/memory_guard.h"
#include "nic-emulator/verbs/next_library.h"

namespace cepheus::verbs {
namespace {

constexpr unsigned kUnderstoodAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                       IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
constexpr unsigned kAddressing = IBV_ACCESS_ZERO_BASED;
// Accepted without effect: a hint, and a permission for windows, which this NIC lacks.
constexpr unsigned kHarmlessAccess = IBV_ACCESS_HUGETLB | IBV_ACCESS_MW_BIND;
constexpr unsigned kOptionalAccess = IBV_ACCESS_OPTIONAL_RANGE;
constexpr unsigned kNeedsLocalWrite = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

int check_access(unsigned access) {
  const unsigned known = kUnderstoodAccess | kAddressing | kHarmlessAccess | kOptionalAccess;
  if ((access & ~known) != 0) return EOPNOTSUPP;
  if ((access & kNeedsLocalWrite) != 0 && (access & IBV_ACCESS_LOCAL_WRITE) == 0) return EINVAL;
  return 0;
}

// Whether the program itself has this access to the page at `address` (since Linux 5.14; before,
// any mapped page). Untouched pages are created, as by pinning.
bool may_access(std::uintptr_t address, std::size_t page, bool writes) {
  static const bool is_known = [&] {
    const auto here = reinterpret_cast<std::uintptr_t>(&is_known) & ~(page - 1);
    return ::madvise(reinterpret_cast<void*>(here), page, MADV_POPULATE_READ) == 0;
  }();
  return !is_known || ::madvise(reinterpret_cast<void*>(address & ~(page - 1)), page,
                                writes ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0;
}

// mincore() fails on an unmapped page. So does msync(), but valgrind complains of its bytes that no
// object of the program has; it serves where mincore() fails for a reason of its own.
bool is_mapped(std::uintptr_t first, std::uintptr_t end, std::size_t page) {
  std::array<unsigned char, 4096> unused;
  while (first < end) {
    const std::size_t bytes = std::min<std::size_t>(end - first, unused.size() * page);
    void* const part = reinterpret_cast<void*>(first);
    const bool is_there = ::mincore(part, bytes, unused.data()) == 0 ||
                          (errno != ENOMEM && ::msync(part, bytes, MS_ASYNC) == 0);
    if (!is_there) return false;
    first += bytes;
  }
  return true;
}

// Hardware would pin all pages. The emulated NIC checks that all are mapped, and that the first and
// the last one are accessible: checking each costs as much as copying a large message.
bool is_accessible(void* address, std::size_t length, bool writes) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const std::uintptr_t first = begin & ~(page - 1);
  const std::uintptr_t end = begin + length;
  if (end < begin) return false;
  return is_mapped(first, end, page) && may_access(begin, page, writes) &&
         may_access(end - 1, page, writes);
}

// `key`: of the program's choice; without one, the NIC's.
ibv_mr* register_region(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova,
                        unsigned access, std::optional<std::uint32_t> key = std::nullopt) {
  return guarded([&]() -> ibv_mr* {
    ProtectionDomain& domain = ProtectionDomain::of(pd);
    LiveNic& nic = domain.owner().nic();
    if (nic.is_abandoned()) return refuse(ENODEV);
    if (const int error = check_access(access); error != 0) return refuse(error);
    const bool writes = (access & IBV_ACCESS_LOCAL_WRITE) != 0;
    const std::uint64_t base = (access & IBV_ACCESS_ZERO_BASED) != 0 ? 0 : iova;
    if (length > 0 && !is_accessible(address, length, writes)) return refuse(EFAULT);
    install_memory_guard();
    auto keys = nic.run([&](Nic& engine, Instant, NicOutput&) {
      const unsigned rights = access & kUnderstoodAccess;
      return key ? engine.register_memory_as(*key, domain.id(), address, length, base, rights)
                 : engine.register_memory(domain.id(), address, length, base, rights);
    });
    if (!keys) return refuse_creation("register memory", keys.error());
    return new MemoryRegion(domain, address, length, base, access, *keys);
  });
}

}  // namespace

ProtectionDomain::ProtectionDomain(Context& owner)
    : ibv_pd{}, context_(owner.shared_from_this()), in_nic_(owner.nic().objects().domains) {
  // The NIC's number for it; all contexts of the process share the NIC.
  static std::atomic<std::uint32_t> domains{0};
  context = &owner.context;
  handle = ++domains;
}

MemoryRegion::MemoryRegion(ProtectionDomain& domain, void* address, std::size_t bytes,
                           std::uint64_t iova, unsigned access, const MemoryKeys& keys)
    : ibv_mr{}, iova_(iova), access_(access) {
  in_domain_.emplace(domain.users());
  context = domain.context;
  pd = &domain;
  addr = address;
  length = bytes;
  handle = keys.lkey;
  lkey = keys.lkey;
  rkey = keys.rkey;
}

int MemoryRegion::change(int flags, ibv_pd* to, void* address, std::size_t bytes,
                         unsigned new_access) {
  const bool moves = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
  const bool gets_access = (flags & IBV_REREG_MR_CHANGE_ACCESS) != 0;
  const bool gets_domain = (flags & IBV_REREG_MR_CHANGE_PD) != 0;
  if (flags == 0 || (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) != 0) return EINVAL;
  if (moves && (address == nullptr || bytes == 0)) return EINVAL;
  if (gets_domain && (to == nullptr || to->context != context)) return EINVAL;
  if (!moves) {
    address = addr;
    bytes = length;
  }
  if (!gets_access) new_access = access_;
  if (const int error = check_access(new_access); error != 0) return error;
  const bool writes = (new_access & IBV_ACCESS_LOCAL_WRITE) != 0;
  if (bytes > 0 && !is_accessible(address, bytes, writes)) return EFAULT;
  std::uint64_t base = iova_;
  const bool was_zero_based = (access_ & IBV_ACCESS_ZERO_BASED) != 0;
  if (moves || was_zero_based) base = reinterpret_cast<std::uintptr_t>(address);
  if ((new_access & IBV_ACCESS_ZERO_BASED) != 0) base = 0;
  ProtectionDomain& domain = ProtectionDomain::of(gets_domain ? to : pd);
  const auto changed = domain.owner().nic().run([&](Nic& engine, Instant, NicOutput&) {
    return engine.change_memory(lkey, domain.id(), address, bytes, base,
                                new_access & kUnderstoodAccess);
  });
  if (!changed) return to_errno(changed.error().code);
  addr = address;
  length = bytes;
  iova_ = base;
  access_ = new_access;
  pd = &domain;
  in_domain_.emplace(domain.users());
  return 0;
}

}  // namespace cepheus::verbs

using namespace cepheus::verbs;

CEPHEUS_EXPORT ibv_pd* ibv_alloc_pd(ibv_context* context) {
  CEPHEUS_PASS_ON_UNLESS_OURS(context, ibv_alloc_pd, context);
  return guarded([&]() -> ibv_pd* {
    Context& ours = Context::of(context);
    if (ours.nic().is_abandoned()) return refuse(ENODEV);
    if (is_at_limit(ours.nic().objects().domains, kMaxPds)) return refuse(ENOMEM);
    return new ProtectionDomain(ours);
  });
}

CEPHEUS_EXPORT int ibv_dealloc_pd(ibv_pd* pd) {
  CEPHEUS_PASS_ON_UNLESS_OURS(pd->context, ibv_dealloc_pd, pd);
  return guarded([&] {
    ProtectionDomain& ours = ProtectionDomain::of(pd);
    if (ours.users() != 0) return refuse_call(EBUSY);
    delete &ours;  // ends the NIC, if the device was closed before
    return 0;
  });
}

CEPHEUS_EXPORT ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, std::size_t length, int access) {
  if (!is_ours(pd->context)) {
    return call_next<ibv_mr*(ibv_pd*, void*, std::size_t, int)>("ibv_reg_mr", pd, address, length,
                                                                access);
  }
  return register_region(pd, address, length, reinterpret_cast<std::uintptr_t>(address),
                         static_cast<unsigned>(access));
}

CEPHEUS_EXPORT ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* address, std::size_t length,
                                       std::uint64_t iova, int access) {
  if (!is_ours(pd->context)) {
    return call_next<ibv_mr*(ibv_pd*, void*, std::size_t, std::uint64_t, int)>(
        "ibv_reg_mr_iova", pd, address, length, iova, access);
  }
  return register_region(pd, address, length, iova, static_cast<unsigned>(access));
}

CEPHEUS_EXPORT ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, std::size_t length,
                                        std::uint64_t iova, unsigned access) {
  CEPHEUS_PASS_ON_UNLESS_OURS(pd->context, ibv_reg_mr_iova2, pd, address, length, iova, access);
  return register_region(pd, address, length, iova, access);
}

CEPHEUS_EXPORT ibv_mr* cepheus_roce_reg_mr_as(ibv_pd* pd, void* address, std::size_t length,
                                              std::uint64_t iova, std::uint32_t key,
                                              unsigned access) {
  if (!is_ours(pd->context)) return refuse(EOPNOTSUPP);
  return register_region(pd, address, length, iova, access, key);
}

CEPHEUS_EXPORT ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t length,
                                         std::uint64_t iova, int fd, int access) {
  CEPHEUS_PASS_ON_UNLESS_OURS(pd->context, ibv_reg_dmabuf_mr, pd, offset, length, iova, fd, access);
  return refuse(EOPNOTSUPP);
}

CEPHEUS_EXPORT int ibv_rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* address,
                                std::size_t length, int access) {
  CEPHEUS_PASS_ON_UNLESS_OURS(mr->context, ibv_rereg_mr, mr, flags, pd, address, length, access);
  MemoryRegion& ours = MemoryRegion::of(mr);
  const int error = call_nic(Context::of(mr->context).nic(), [&] {
    install_memory_guard();
    return ours.change(flags, pd, address, length, static_cast<unsigned>(access));
  });
  return error == 0 ? 0 : IBV_REREG_MR_ERR_INPUT;  // the region stays as it is
}

CEPHEUS_EXPORT int ibv_dereg_mr(ibv_mr* mr) {
  CEPHEUS_PASS_ON_UNLESS_OURS(mr->context, ibv_dereg_mr, mr);
  return guarded([&] {
    const bool known = Context::of(mr->context).nic().run([&](Nic& engine, Instant, NicOutput&) {
      return engine.deregister_memory(mr->lkey);
    });
    delete &MemoryRegion::of(mr);
    return known ? 0 : refuse_call(EINVAL);
  });
}
