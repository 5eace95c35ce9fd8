// SPDX-License-Identifier: BSD-3-Clause
// Messages of derived types whose sizes the receiver learns from probes: counts, elements of parts
// of a type, of a part of a record too; receives into types that are longer than what comes.
#include <deque>
#include <vector>

#include "completion.hpp"
#include "typed_blocks.hpp"

using namespace battery;

namespace {

constexpr int rounds = 5;
constexpr int letters = 6;  // to each rank in a round

// What sender and receiver both know, and the receiver checks a probe by.
struct Letter {
    Unit unit;
    int units;
    int more;  // basic elements of another record behind them
    uint64_t id;

    size_t bytes() const {
        constexpr size_t of_more[] = {0, 8, 10};
        return static_cast<size_t>(units) * bytes_of(unit) + of_more[more];
    }
    int elements() const { return units * basics(unit) + more; }
};

Letter letter(int round, int from, int to, int index) {
    const uint64_t pair = world.seed * 1009 + static_cast<uint64_t>((round * 64 + from) * 64 + to);
    const auto unit = static_cast<Unit>(Random(pair).below(5));
    Random random(mix(pair) + static_cast<uint64_t>(index));
    // Bytes that end a fragment within a record hang MPICH 4.0.2, see derived_types.cpp.
    const int most = unit == Unit::record ? 700 / 12 : random.chance(70) ? 60 : 1200;
    const int units = random.chance(15) ? 0 : 12 * random.below(most);
    const int more = unit == Unit::record && random.chance(40) ? random.between(1, 2) : 0;
    return {unit, units, more, random.next()};
}

// Records without gaps, and a part of one.
class PartOfRecord {
  public:
    explicit PartOfRecord(const Letter& letter) : data_(stream(letter.id, letter.bytes())) {
        const int ones[] = {1, 1, 1};
        const MPI_Aint places[] = {0, 8, 10};
        const MPI_Datatype members[] = {MPI_DOUBLE, MPI_SHORT, MPI_BYTE};
        MPI_Datatype padded, parts[2];
        MPI_Type_create_struct(3, ones, places, members, &padded);
        MPI_Type_create_resized(padded, 0, 11, &parts[0]);
        MPI_Type_create_struct(letter.more, ones, places, members, &parts[1]);
        const int lengths[] = {letter.units, 1};
        const MPI_Aint begins[] = {0, letter.units * MPI_Aint{11}};
        MPI_Type_create_struct(2, lengths, begins, parts, &type_);
        MPI_Type_commit(&type_);
        MPI_Type_free(&padded);
        MPI_Type_free(&parts[0]);
        MPI_Type_free(&parts[1]);
    }
    PartOfRecord(const PartOfRecord&) = delete;
    ~PartOfRecord() { MPI_Type_free(&type_); }
    const void* data() const { return data_.data(); }
    MPI_Datatype type() const { return type_; }

  private:
    const std::vector<unsigned char> data_;
    MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

// All letters of a round from this rank to another one, in one type.
class Sender {
  public:
    Sender(Random& own, int round, int to)
        : round_(round), to_(to), blocks_(own, of(0).unit, units(), Placing::by_extent) {
        for (int i = 0; i < letters; ++i)
            if (of(i).more == 0) blocks_.fill(static_cast<size_t>(i), of(i).id);
    }

    void send(Random& own, int i, MPI_Comm comm, std::vector<MPI_Request>& requests) {
        const auto call = own.chance(50) ? MPI_Isend : MPI_Issend;
        const auto b = static_cast<size_t>(i);
        MPI_Request& request = requests.emplace_back();
        if (of(i).more == 0) {
            call(blocks_.block(b), blocks_.count(b), blocks_.type(), to_, i, comm, &request);
        } else {
            const PartOfRecord& part = parts_.emplace_back(of(i));
            call(part.data(), 1, part.type(), to_, i, comm, &request);
        }
    }

    void judge() const { blocks_.check_all("changed byte of a send buffer (offset)"); }

  private:
    Letter of(int i) const { return letter(round_, world.rank, to_, i); }
    std::vector<int> units() const {
        std::vector<int> units;
        for (int i = 0; i < letters; ++i) units.push_back(of(i).more == 0 ? of(i).units : 0);
        return units;
    }

    const int round_, to_;
    TypedBlocks blocks_;
    std::deque<PartOfRecord> parts_;
};

// Those from another rank; elements of the receiver's type end where its own number of units does.
class Receiver {
  public:
    Receiver(Random& own, int round, int from)
        : round_(round), from_(from), blocks_(own, of(0).unit, rooms(own), Placing::by_extent) {
        probed_.resize(letters);
        received_.resize(letters);
        request_of_.assign(letters, -1);
    }

    void note_probed(const MPI_Status& status) {
        probed_[static_cast<size_t>(status.MPI_TAG)] = status;
        judge_status(status);
    }

    void receive(Random& order, int i, MPI_Message message, MPI_Comm comm,
                 std::vector<MPI_Request>& requests) {
        const auto b = static_cast<size_t>(i);
        void* const to = blocks_.block(b);
        const int count = count_for(order, b);
        const MPI_Datatype type = blocks_.type();
        const bool is_matched = message != MPI_MESSAGE_NULL;
        blocks_.expect(b, of(i).id, of(i).bytes());
        if (order.chance(50)) {
            if (is_matched)
                MPI_Mrecv(to, count, type, &message, &received_[b]);
            else
                MPI_Recv(to, count, type, from_, i, comm, &received_[b]);
            return;
        }
        request_of_[b] = static_cast<int>(requests.size());
        MPI_Request& request = requests.emplace_back();
        if (is_matched)
            MPI_Imrecv(to, count, type, &message, &request);
        else
            MPI_Irecv(to, count, type, from_, i, comm, &request);
    }

    void judge(const std::vector<MPI_Status>& statuses) {
        for (size_t b = 0; b < letters; ++b) {
            if (request_of_[b] >= 0) received_[b] = statuses[static_cast<size_t>(request_of_[b])];
            judge_status(received_[b]);
            for (const MPI_Status& status : {probed_[b], received_[b]})
                topic("statuses").add_status(status, blocks_.type());
        }
        blocks_.check_all("wrong byte of a receive buffer (offset)");
        blocks_.add_to(topic("received"));
    }

  private:
    Letter of(int i) const { return letter(round_, from_, world.rank, i); }

    std::vector<int> rooms(Random& own) const {
        constexpr int numbers[] = {1, 5, 7, 16, 48};
        const int together = numbers[own.below(5)];
        std::vector<int> rooms;
        for (int i = 0; i < letters; ++i) {
            const int least = of(i).units + (of(i).more > 0 ? 1 : 0);
            rooms.push_back(((least + together - 1) / together + own.below(3)) * together);
        }
        return rooms;
    }

    // At least what the probe has shown to be needed.
    int count_for(Random& order, size_t b) const {
        int bytes = 0, size = 0;
        MPI_Get_count(&probed_[b], MPI_BYTE, &bytes);
        MPI_Type_size(blocks_.type(), &size);
        const int needed = (bytes + size - 1) / size;
        return order.between(needed, std::max(needed, blocks_.count(b)));
    }

    void judge_status(const MPI_Status& status) const {
        const Letter expected = of(status.MPI_TAG);
        const auto bytes = static_cast<int>(expected.bytes());
        int size = 0, count = -1, elements = -1;
        MPI_Count many = -1;
        MPI_Type_size(blocks_.type(), &size);
        MPI_Get_count(&status, blocks_.type(), &count);
        MPI_Get_elements(&status, blocks_.type(), &elements);
        MPI_Get_elements_x(&status, blocks_.type(), &many);
        check_equal(status.MPI_SOURCE, from_, "source");
        check_equal(count, bytes % size == 0 ? bytes / size : MPI_UNDEFINED, "count");
        check_equal(elements, expected.elements(), "elements");
        check_equal(many, expected.elements(), "elements_x");
    }

    const int round_, from_;
    TypedBlocks blocks_;
    std::vector<MPI_Status> probed_, received_;
    std::vector<int> request_of_;
};

// By one of the four probes; null unless it was matched.
MPI_Message probe(Random& order, MPI_Comm comm, MPI_Status* status) {
    MPI_Message message = MPI_MESSAGE_NULL;
    int flag = 0;
    const int way = order.below(4);
    if (way == 0) MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, status);
    if (way == 1) MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &message, status);
    while (!flag && way == 2) MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &flag, status);
    while (!flag && way == 3)
        MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &flag, &message, status);
    return message;
}

void run_round(Random& own, Random& order, MPI_Comm comm, int round) {
    std::deque<Sender> senders;
    std::deque<Receiver> receivers;
    std::vector<MPI_Request> sends, receives;
    for (int r = 0; r < world.size; ++r) {
        senders.emplace_back(own, round, r);
        receivers.emplace_back(own, round, r);
    }
    for (int i = 0; i < letters; ++i)
        for (Sender& sender : senders) sender.send(own, i, comm, sends);
    for (int i = 0; i < letters * world.size; ++i) {
        MPI_Status status{};  // MPICH 4.0.2 may leave the mark of what is cancelled as it was
        const MPI_Message message = probe(order, comm, &status);
        Receiver& receiver = receivers[static_cast<size_t>(status.MPI_SOURCE)];
        receiver.note_probed(status);
        receiver.receive(order, status.MPI_TAG, message, comm, receives);
    }
    const std::vector<MPI_Status> statuses = complete(order, receives);
    complete(order, sends);
    for (Receiver& receiver : receivers) receiver.judge(statuses);
    for (const Sender& sender : senders) sender.judge();
    MPI_Barrier(comm);
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    Random own = own_random(81);
    Random order = own_random(82);  // how often it is asked depends on the time
    for (int round = 0; round < rounds; ++round) run_round(own, order, comm, round);
    MPI_Comm_free(&comm);
    return end();
}
