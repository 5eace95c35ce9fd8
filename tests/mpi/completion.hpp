// SPDX-License-Identifier: BSD-3-Clause
// Completes requests by randomly chosen Wait and Test calls. Must not decide anything by the order
// of completion.
#pragma once

#include <vector>

#include "battery.hpp"

namespace battery {

// Requests that complete together, with the status that each completion gave.
class Completion {
  public:
    explicit Completion(std::vector<MPI_Request>& requests)
        : requests_(requests), statuses_(requests.size()), done_(requests.size(), false) {}

    // One random call of the twelve; may complete nothing.
    void step(Random& random, bool with_statuses);
    // Until all are complete. Without statuses the calls get MPI_STATUS(ES)_IGNORE.
    void finish(Random& random, bool with_statuses = true);
    const MPI_Status& status(size_t i) const { return statuses_[i]; }
    bool all_done() const;

  private:
    int count() const { return static_cast<int>(requests_.size()); }
    void note(size_t i, const MPI_Status& status, bool with_status);
    void note_all(const std::vector<MPI_Status>& statuses, bool with_statuses);
    void step_one(Random& random, bool with_statuses, int way);
    void step_all(bool with_statuses, bool wait);
    void step_any(bool with_statuses, bool wait);
    void step_some(bool with_statuses, bool wait);

    std::vector<MPI_Request>& requests_;
    std::vector<MPI_Status> statuses_;
    std::vector<bool> done_;  // complete, or null or inactive from the start
};

// The usual case: all of `requests`, statuses returned.
std::vector<MPI_Status> complete(Random& random, std::vector<MPI_Request>& requests);

}  // namespace battery
