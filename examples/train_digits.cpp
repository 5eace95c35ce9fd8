// SPDX-License-Identifier: BSD-3-Clause
// Data-parallel training in plain MPI: every rank holds the whole network, learns from its own
// images, and the gradients are summed over all ranks in each step. It stands for the many programs
// that know nothing of vecmpi; keep it so.
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "dataset.hpp"
#include "gradient_exchange.hpp"
#include "measure.hpp"
#include "network.hpp"
#include "options.hpp"
#include "random.hpp"

namespace example {
namespace {

struct World {
    MPI_Comm comm = MPI_COMM_WORLD;
    int rank = 0;
    int ranks = 1;

    World() {
        MPI_Comm_rank(comm, &rank);
        MPI_Comm_size(comm, &ranks);
    }
    bool speaks() const { return rank == 0; }
};

// Rank 0 reads, the others receive. Throws on all ranks or on none.
std::string read_everywhere(const World& world, const std::string& path) {
    std::string text;
    long long bytes = -1;
    if (world.rank == 0) {
        if (std::ifstream file(path, std::ios::binary); file) {
            text.assign(std::istreambuf_iterator<char>(file), {});
            bytes = static_cast<long long>(text.size());
        }
    }
    MPI_Bcast(&bytes, 1, MPI_LONG_LONG, 0, world.comm);
    if (bytes < 0) throw std::runtime_error("cannot be read");
    text.resize(static_cast<std::size_t>(bytes));
    MPI_Bcast(text.data(), static_cast<int>(bytes), MPI_CHAR, 0, world.comm);
    return text;
}

Dataset load(const World& world, const std::string& path) {
    try {
        return parse_digits(read_everywhere(world, path));
    } catch (const std::runtime_error& error) {
        throw std::invalid_argument("--data " + path + ": " + error.what());
    }
}

class Trainer {
  public:
    Trainer(const World& world, const Options& options, const Dataset& data);

    void announce() const;
    void train();
    // False if the ranks ended with different networks.
    bool report() const;

  private:
    std::size_t global_batch() const { return options_.batch * ranks_; }
    std::size_t steps_per_epoch() const;
    Batch batch_of_step(std::size_t step);
    void step(std::size_t number);
    double mean_loss_of_epoch() const;
    int count_correct_held_out();
    void show_epoch(std::size_t epoch) const;
    StepTimes times_over_ranks(std::size_t first) const;

    const World& world_;
    const Options& options_;
    const Dataset& data_;
    std::size_t ranks_;
    Split split_;
    Random order_;
    BatchBuilder builder_;
    Network network_;
    std::vector<Bucket> buckets_;
    GradientExchange exchange_;
    StepClock clock_;
    BitHash hash_;                     // of the summed gradients and losses of every step
    std::vector<float> step_losses_;   // of the global batch, every step
    std::vector<float> epoch_losses_;  // mean of the steps of an epoch
    int correct_ = 0;                  // of the held-out images
};

Trainer::Trainer(const World& world, const Options& options, const Dataset& data)
    : world_(world),
      options_(options),
      data_(data),
      ranks_(static_cast<std::size_t>(world.ranks)),
      split_(split_every_fifth(data.size())),
      order_(options.seed + 1),
      network_(perceptron_shape(options.width, options.layers), options.batch, options.seed),
      buckets_(plan_buckets(network_.gradient_blocks(), options.bucket_bytes, options.wire)),
      exchange_(world.comm, options.exchange, options.wire, network_.gradients(), buckets_) {}

std::size_t Trainer::steps_per_epoch() const {
    return std::max<std::size_t>(1, split_.training.size() / global_batch());
}

// The global batch is a stretch of the shuffled images, each rank's batch a stretch of that. With
// more ranks than images the stretch starts again from the first.
Batch Trainer::batch_of_step(std::size_t step) {
    const std::size_t first =
        step * global_batch() + static_cast<std::size_t>(world_.rank) * options_.batch;
    std::vector<std::size_t> chosen(options_.batch);
    for (std::size_t i = 0; i < chosen.size(); ++i) {
        chosen[i] = split_.training[(first + i) % split_.training.size()];
    }
    return builder_.gather(data_, chosen);
}

void Trainer::step(std::size_t number) {
    const Batch batch = batch_of_step(number);
    const double start = MPI_Wtime();
    network_.forward(batch);
    network_.backward(batch, [this](std::size_t block) { exchange_.block_ready(block); });
    const CommunicationTime communication = exchange_.finish();
    const float scale = 1.0F / static_cast<float>(global_batch());
    network_.update(static_cast<float>(options_.learning_rate), scale);
    clock_.add(MPI_Wtime() - start, communication);
    hash_.add(network_.gradients());  // the loss of the global batch is among them
    step_losses_.push_back(network_.loss_sum() * scale);
}

double Trainer::mean_loss_of_epoch() const {
    double sum = 0;
    for (auto loss = step_losses_.end() - static_cast<std::ptrdiff_t>(steps_per_epoch());
         loss != step_losses_.end(); ++loss) {
        sum += *loss;
    }
    return sum / static_cast<double>(steps_per_epoch());
}

// Each rank judges its share of the held-out images.
int Trainer::count_correct_held_out() {
    int correct = 0;
    std::vector<std::size_t> chosen;
    const auto judge = [&] {
        correct += network_.forward(builder_.gather(data_, chosen)).correct;
        chosen.clear();
    };
    for (auto i = static_cast<std::size_t>(world_.rank); i < split_.held_out.size(); i += ranks_) {
        chosen.push_back(split_.held_out[i]);
        if (chosen.size() == options_.batch) judge();
    }
    judge();
    MPI_Allreduce(MPI_IN_PLACE, &correct, 1, MPI_INT, MPI_SUM, world_.comm);
    return correct;
}

void Trainer::train() {
    for (std::size_t epoch = 0; epoch < options_.epochs; ++epoch) {
        order_.shuffle(split_.training);
        for (std::size_t i = 0; i < steps_per_epoch(); ++i) step(i);
        epoch_losses_.push_back(static_cast<float>(mean_loss_of_epoch()));
        correct_ = count_correct_held_out();
        show_epoch(epoch);
    }
}

void Trainer::announce() const {
    if (!world_.speaks()) return;
    const std::size_t parameters = network_.parameters().size();
    std::printf(
        "train_digits: %d rank%s, %zu hidden layers of %zu, %zu parameters, %.2f MiB of gradients "
        "in %zu buckets, batch %zu a rank, %s%s\n",
        world_.ranks, world_.ranks == 1 ? "" : "s", options_.layers, options_.width, parameters,
        static_cast<double>(bytes_of(options_.wire) * parameters) / (1 << 20), buckets_.size(),
        options_.batch, options_.wire == Wire::halves ? "float16, " : "",
        options_.exchange == Exchange::overlap ? "overlap" : "blocking");
    std::fflush(stdout);
}

double percent(int part, std::size_t whole) { return 100.0 * part / static_cast<double>(whole); }

void Trainer::show_epoch(std::size_t epoch) const {
    if (!world_.speaks()) return;
    const StepTimes times = clock_.medians(clock_.steps() - steps_per_epoch());
    std::printf(
        "epoch %zu/%zu  loss %.4f  accuracy %.1f %%  %.1f ms a step, of which %.1f in MPI\n",
        epoch + 1, options_.epochs, static_cast<double>(epoch_losses_.back()),
        percent(correct_, split_.held_out.size()), times.step, times.communication);
    std::fflush(stdout);
}

// Mean over the ranks of each rank's medians; valid on rank 0.
StepTimes Trainer::times_over_ranks(std::size_t first) const {
    const StepTimes mine = clock_.medians(first);
    const double local[] = {mine.step, mine.posting, mine.waiting, mine.communication};
    double sum[4] = {};
    MPI_Reduce(local, sum, 4, MPI_DOUBLE, MPI_SUM, 0, world_.comm);
    for (double& value : sum) value /= world_.ranks;
    return {sum[0], sum[1], sum[2], sum[3]};
}

// Lines that begin with "result" are for scripts: a name, then values.
bool Trainer::report() const {
    BitHash hash = hash_;
    hash.add(network_.parameters());
    std::uint64_t range[] = {hash.value(), ~hash.value()};
    MPI_Allreduce(MPI_IN_PLACE, range, 2, MPI_UINT64_T, MPI_MAX, world_.comm);
    const bool agree = range[0] == ~range[1];
    // The first step sets up connections.
    const StepTimes times = times_over_ranks(clock_.steps() > 1 ? 1 : 0);
    if (!world_.speaks()) return agree;
    std::printf("result curve");
    for (const float loss : epoch_losses_) std::printf(" %a", static_cast<double>(loss));
    std::printf("\nresult hash %016llx\n", static_cast<unsigned long long>(hash.value()));
    std::printf("result ranks_agree %s\n", agree ? "yes" : "no");
    std::printf("result accuracy %.4f\n", percent(correct_, split_.held_out.size()) / 100);
    std::printf("result steps %zu\n", clock_.steps());
    std::printf("result step_ms %.3f\n", times.step);
    std::printf("result communication_ms %.3f\n", times.communication);
    std::printf("result posting_ms %.3f\n", times.posting);
    std::printf("result waiting_ms %.3f\n", times.waiting);
    return agree;
}

int run(const World& world, int argc, char** argv) {
    const std::vector<const char*> arguments(argv + 1, argv + argc);
    Options options = parse_options(arguments);
    if (options.help) {
        if (world.speaks()) std::fputs(usage, stdout);
        return 0;
    }
    if (options.data.empty()) options.data = TRAIN_DIGITS_DATA;
    const Dataset data = load(world, options.data);
    Trainer trainer(world, options, data);
    trainer.announce();
    trainer.train();
    return trainer.report() ? 0 : 1;
}

}  // namespace
}  // namespace example

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int status = 0;
    {
        const example::World world;
        try {
            status = example::run(world, argc, argv);
        } catch (const std::invalid_argument& error) {  // the same on all ranks
            if (world.speaks()) std::fprintf(stderr, "train_digits: %s\n", error.what());
            status = 2;
        } catch (const std::exception& error) {  // the other ranks may be waiting for this one
            std::fprintf(stderr, "train_digits: rank %d: %s\n", world.rank, error.what());
            MPI_Abort(world.comm, 3);
        }
    }
    MPI_Finalize();
    return status;
}
