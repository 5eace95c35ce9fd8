// SPDX-License-Identifier: BSD-3-Clause
// What the segmented collectives have in common: the run of all segments.
#pragma once

#include <algorithm>

#include "segment_count.hpp"
#include "segmented_collectives.hpp"

namespace vecmpi::pipeline {

// In the report.
void count_segmented(const CollectiveCall& call, uint64_t bytes) noexcept;

// What every nonblocking collective of a segment says of itself.
offload::CallFacts facts_of_segment(MPI_Comm comm, MPI_Count count, MPI_Datatype type) noexcept;

// Posts segments 0 to n-1 in order, as MPI demands of collectives: post_segment(i, request). When
// it posts segment i, segment i - segments_in_flight is complete. Completes them all; returns the
// first error.
template <class PostSegment>
int run_segments(unsigned n, PostSegment post_segment) noexcept {
    MPI_Request in_flight[segments_in_flight];
    std::fill(in_flight, in_flight + segments_in_flight, MPI_REQUEST_NULL);
    int first_error = MPI_SUCCESS;
    const auto note = [&first_error](int rc) noexcept {
        if (first_error == MPI_SUCCESS) first_error = rc;
    };
    for (unsigned i = 0; i < n; ++i) {
        MPI_Request& request = in_flight[i % segments_in_flight];
        note(offload::wait_one(&request, MPI_STATUS_IGNORE));
        note(post_segment(i, &request));
    }
    for (unsigned i = 0; i < segments_in_flight; ++i)
        note(offload::wait_one(&in_flight[(n + i) % segments_in_flight], MPI_STATUS_IGNORE));
    count(Counter::segments_issued, n);
    return first_error;
}

}  // namespace vecmpi::pipeline
