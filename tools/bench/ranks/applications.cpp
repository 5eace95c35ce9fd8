// SPDX-License-Identifier: BSD-3-Clause
// applications: what published codes exchange, between two ranks: by a datatype that lives long, by
// one that lives for twenty messages, and packed by hand. A ping-pong, or a transpose by
// MPI_Alltoall. A figure is the time of one message, or of one transpose. Makes sure that what came
// is what was sent; no more is tested.
#include <mpi.h>

#include <cstring>
#include <string>
#include <vector>

#include "application_layouts.hpp"
#include "bench.hpp"
#include "record.hpp"
#include "timing.hpp"
#include "typed_buffers.hpp"

namespace vecmpi::bench {
namespace {

constexpr long by_hand_warming = 40, untimed_lives = 10, least_lives = 5, most_lives = 2000;
constexpr long round_trips_of_life = 10;

struct Job {
    const ApplicationRow& row;
    ApplicationLayout& layout;
    int rank;
    double seconds;
    std::size_t bytes;           // packed
    std::vector<char> expected;  // the received data, packed

    int other() const { return 1 - rank; }
    int count() const { return static_cast<int>(bytes); }
};

// How data go to the other rank.
class Way {
  public:
    Way() = default;
    virtual ~Way() = default;
    Way(const Way&) = delete;
    Way& operator=(const Way&) = delete;
    virtual void send() = 0;
    virtual void receive() = 0;
    virtual void transpose() = 0;
};

class ByType : public Way {
  public:
    explicit ByType(const Job& job) : job_(job), ends_(job.layout.make_types()) {}
    ~ByType() override { free_types(ends_); }
    const TypedEnds& ends() const { return ends_; }
    void send() override {
        MPI_Send(ends_.out, 1, ends_.out_type, job_.other(), 0, MPI_COMM_WORLD);
    }
    void receive() override {
        MPI_Recv(ends_.in, 1, ends_.in_type, job_.other(), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    void transpose() override {
        MPI_Alltoall(ends_.out, 1, ends_.out_type, ends_.in, 1, ends_.in_type, MPI_COMM_WORLD);
    }

  private:
    const Job& job_;
    TypedEnds ends_;
};

class ByHand : public Way {
  public:
    explicit ByHand(const Job& job) : job_(job), out_(job.bytes), in_(job.bytes) {}
    void send() override {
        job_.layout.pack(out_.data());
        MPI_Send(out_.data(), job_.count(), MPI_BYTE, job_.other(), 0, MPI_COMM_WORLD);
    }
    void receive() override {
        MPI_Recv(in_.data(), job_.count(), MPI_BYTE, job_.other(), 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        job_.layout.unpack(in_.data());
    }
    void transpose() override {
        job_.layout.pack(out_.data());
        MPI_Alltoall(out_.data(), job_.count() / 2, MPI_BYTE, in_.data(), job_.count() / 2,
                     MPI_BYTE, MPI_COMM_WORLD);
        job_.layout.unpack(in_.data());
    }

  private:
    const Job& job_;
    std::vector<char> out_, in_;
};

// A round trip is two messages, or two transposes.
void go_round(const Job& job, Way& way, long round_trips) {
    for (long i = 0; i < round_trips; i++) {
        if (job.row.transposes) {
            way.transpose();
            way.transpose();
            continue;
        }
        if (job.rank == 0) way.send();
        way.receive();
        if (job.rank == 1) way.send();
    }
}

Samples sample_way(const Job& job, Way& way, long warming) {
    const auto half_trips = [&](long count) {
        const double start = now_ns();
        go_round(job, way, count);
        return (now_ns() - start) / static_cast<double>(2 * count);
    };
    return sample_half_trips(half_trips, job.seconds, warming);
}

Samples long_lived(const Job& job) {
    ByType way(job);
    return sample_way(job, way, warming_calls(way.ends().in_type, job.bytes));
}

// The type is made and freed within the time.
double live(const Job& job) {
    const double start = now_ns();
    {
        ByType way(job);
        go_round(job, way, round_trips_of_life);
    }
    return (now_ns() - start) / static_cast<double>(2 * round_trips_of_life);
}

Samples short_lived(const Job& job) {
    double each_ns = 0;
    for (long i = 0; i < untimed_lives; i++) each_ns = live(job);
    const long lives =
        repetitions(2 * round_trips_of_life * each_ns, job.seconds, least_lives, most_lives);
    Samples samples;
    for (long i = 0; i < lives; i++) samples.add(live(job));
    return samples;
}

Samples by_hand(const Job& job) {
    ByHand way(job);
    return sample_way(job, way, by_hand_warming);
}

struct Lifetime {
    const char* name;
    Samples (*sample)(const Job& job);
};
constexpr Lifetime lifetimes[] = {
    {"long-lived", long_lived}, {"short-lived", short_lived}, {"by-hand", by_hand}};

void print_wrong(const std::string& name, const Job& job, const char* why) {
    if (job.rank != 0) return;
    JsonLine line("wrong");
    line.text("name", name).number("at", static_cast<double>(job.bytes)).text("why", why).print();
}

// Of a ping-pong the data are rank 0's.
void prepare_data(const Job& job) {
    job.layout.fill(static_cast<unsigned>(job.rank));
    if (job.row.transposes || job.rank == 1) job.layout.clear_received();
}

// What the other rank's data are once they are here, packed.
std::vector<char> data_to_come(const Job& job) {
    std::vector<char> sent(job.bytes), received(job.bytes);
    job.layout.pack(sent.data());
    if (job.row.transposes)
        MPI_Alltoall(sent.data(), job.count() / 2, MPI_BYTE, received.data(), job.count() / 2,
                     MPI_BYTE, MPI_COMM_WORLD);
    else
        MPI_Bcast((received = sent).data(), job.count(), MPI_BYTE, 0, MPI_COMM_WORLD);
    return received;
}

bool has_come(const Job& job) {
    std::vector<char> received(job.bytes);
    job.layout.pack_received(received.data());
    return largest(received != job.expected) == 0;
}

bool type_has_all_bytes(const Job& job) {
    const ByType way(job);
    int size = 0;
    MPI_Type_size(way.ends().out_type, &size);
    return size * (job.row.transposes ? 2 : 1) == job.count();
}

void measure_lifetime(const Job& job, const Lifetime& lifetime) {
    const std::string name = std::string(lifetime.name) + " " + job.row.name;
    prepare_data(job);
    const Samples samples = lifetime.sample(job);
    print_figure({name.c_str(), static_cast<double>(job.bytes), "ns", "lower"},
                 samples.quantile(0.5));
    if (!has_come(job)) print_wrong(name, job, "other bytes have come than were sent");
}

bool is_named(const std::vector<std::string>& names, const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

void measure_size(const ApplicationRow& row, std::size_t size, const Options& options, int rank) {
    const auto layout = row.make(row.dims.at(size));
    layout->fill(static_cast<unsigned>(rank));
    Job job{row, *layout, rank, options.seconds, layout->bytes(), {}};
    job.expected = data_to_come(job);
    if (!type_has_all_bytes(job)) print_wrong(row.name, job, "the type has not the packed bytes");
    for (const Lifetime& lifetime : lifetimes)
        if (is_named(options.calls, lifetime.name)) measure_lifetime(job, lifetime);
}

}  // namespace

void measure_applications(const Options& options) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (const ApplicationRow& row : application_table())
        for (const std::size_t size : options.sizes)
            if (is_named(options.types, row.name)) measure_size(row, size, options, rank);
}

}  // namespace vecmpi::bench
