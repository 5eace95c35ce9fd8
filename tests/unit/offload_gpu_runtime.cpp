// SPDX-License-Identifier: BSD-3-Clause
// Which loaded libraries keep kernels and plans away from buffers.
#include "offload/gpu_runtime.hpp"

#include <catch2/catch.hpp>

using namespace vecmpi;
using offload::has_gpu_runtime;
using offload::LevelZero;

TEST_CASE("gpu: runtimes and drivers", "[offload][gpu]") {
    const auto has = [](const char* path, LevelZero program) {
        return has_gpu_runtime({{"/lib/libc.so.6", "libc.so.6"}, {path, ""}}, program);
    };
    struct Row {
        const char* path;
        bool is_one;
    };
    for (const Row& row :
         {Row{"/lib/libcuda.so.1", true}, Row{"/opt/lib/libcudart.so.12", true},
          Row{"/opt/rocm/lib/libamdhip64.so.5", true}, Row{"/lib/libze_intel_gpu.so.1", true},
          Row{"/lib/libze_intel_gpu_legacy1.so.1", true}, Row{"/lib/libze_loader.so.1", false},
          Row{"/lib/libOpenCL.so.1", false}, Row{"/lib/libhsa-runtime64.so.1", false}}) {
        CAPTURE(row.path);
        CHECK(has(row.path, LevelZero::not_linked) == row.is_one);
        CHECK(has(row.path, LevelZero::linked));
    }
}
