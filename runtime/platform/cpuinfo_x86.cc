// What XNNPACK asks cpuinfo for on x86, by its names, from the CPUID instruction alone.
//
// cpuinfo's own cpuinfo_initialize() also describes processors, cores and caches, which nobody asks for here. For that it reads
// /proc and /sys, crashes where they are cut or made up or one call fails, tries once only, and keeps ten blocks of memory. Its
// decoding of CPUID is pure and is used as it is.
#if defined(TARN_HAVE_CPUINFO) && (defined(__x86_64__) || defined(__i386__))

#include <cpuid.h>
#include <cpuinfo.h>

// From cpuinfo's src/x86/api.h and cpuid.h, which it does not install.
struct cpuid_regs {
  uint32_t eax, ebx, ecx, edx;
};
struct cpuinfo_x86_model_info {
  uint32_t model, family;
  uint32_t base_model, base_family;
  uint32_t stepping;
  uint32_t extended_model, extended_family;
  uint32_t processor_type;
};
extern "C" {
cpuinfo_vendor cpuinfo_x86_decode_vendor(uint32_t ebx, uint32_t ecx, uint32_t edx);
cpuinfo_x86_model_info cpuinfo_x86_decode_model_info(uint32_t eax);
cpuinfo_uarch cpuinfo_x86_decode_uarch(cpuinfo_vendor vendor, const cpuinfo_x86_model_info* model_info);
cpuinfo_x86_isa cpuinfo_x86_detect_isa(cpuid_regs basic_info, cpuid_regs extended_info, uint32_t max_base_index,
                                       uint32_t max_extended_index, cpuinfo_vendor vendor, cpuinfo_uarch uarch);
}

cpuinfo_x86_isa cpuinfo_isa;  // written once, by Detect()

namespace {

cpuid_regs Cpuid(uint32_t leaf) {
  cpuid_regs regs{};
  __cpuid(leaf, regs.eax, regs.ebx, regs.ecx, regs.edx);
  return regs;
}

cpuinfo_core Detect() {
  cpuinfo_core core{};
  core.processor_count = 1;
  const cpuid_regs base = Cpuid(0);
  core.vendor = cpuinfo_x86_decode_vendor(base.ebx, base.ecx, base.edx);
  if (base.eax < 1) return core;
  constexpr uint32_t kExtended = 0x80000000u;
  const uint32_t max_extended = Cpuid(kExtended).eax;
  const cpuid_regs extended = max_extended > kExtended ? Cpuid(kExtended + 1) : cpuid_regs{};
  const cpuid_regs features = Cpuid(1);
  const cpuinfo_x86_model_info model = cpuinfo_x86_decode_model_info(features.eax);
  core.cpuid = features.eax;
  core.uarch = cpuinfo_x86_decode_uarch(core.vendor, &model);
  cpuinfo_isa =
      cpuinfo_x86_detect_isa(features, extended, base.eax, max_extended >= kExtended ? max_extended : 0, core.vendor, core.uarch);
  return core;
}

const cpuinfo_core& Core() {
  static const cpuinfo_core core = Detect();
  return core;
}

}  // namespace

bool cpuinfo_initialize(void) {
  Core();
  return true;
}

// All cores are taken for what this one is.
const cpuinfo_core* cpuinfo_get_core(uint32_t) { return &Core(); }

#endif
