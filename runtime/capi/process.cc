// C API: what does not depend on a model.
#include "runtime/capi/handles.h"
#include "runtime/platform/cpu.h"

#define TARN_TEXT_OF(x) #x
#define TARN_TEXT(x) TARN_TEXT_OF(x)

const char* tarn_version(void) {
  return TARN_TEXT(TARN_VERSION_MAJOR) "." TARN_TEXT(TARN_VERSION_MINOR) "." TARN_TEXT(TARN_VERSION_PATCH);
}

const char* tarn_status_string(tarn_status status) { return tarn::StatusString(status); }

const char* tarn_isa_name(size_t index) {
  const tarn::Span<const char* const> names = tarn::KernelNames();
  return index < names.size() ? names[index] : nullptr;
}

uint32_t tarn_fast_cores(void) { return tarn::FastCores(); }

uint32_t tarn_default_threads(void) { return tarn::DefaultThreads(); }
