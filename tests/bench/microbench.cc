// tarn_microbench: every kernel of the table, and the dense layers, at the shapes of the bench models. The kernels are the best of
// this CPU, or those that TARN_ISA names.
#include <cstdio>
#include <cstdlib>

#include "tests/bench/bench.h"

int main(int argc, char** argv) {
  const char* isa = std::getenv("TARN_ISA");
  const tarn::Kernels* kernels = tarn::SelectKernels(isa);
  if (kernels == nullptr) {
    std::fprintf(stderr, "TARN_ISA is '%s', which this CPU does not run: `tarn inspect --cpu` lists what it does\n", isa);
    return 2;
  }
  tarn::bench::AddAttention(*kernels);
  tarn::bench::AddSlots(*kernels);
  tarn::bench::AddNoncausal(*kernels);
  tarn::bench::AddFeatures(*kernels);
  tarn::bench::AddPointwise(*kernels);
  tarn::bench::AddDense(*kernels);
  benchmark::AddCustomContext("kernels", kernels->name);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
