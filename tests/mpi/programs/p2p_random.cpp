// SPDX-License-Identifier: BSD-3-Clause
// Random mixtures of all point-to-point calls, completed in random ways. Must not wait before all
// is posted.
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "completion.hpp"
#include "layout.hpp"
#include "p2p_plan.hpp"
#include "p2p_shift.hpp"

using namespace battery;

namespace {

MPI_Comm channels[3];
MPI_Comm comm_of(const Message& message) { return channels[static_cast<int>(message.channel)]; }

struct Receive {
    const Message* message;  // of a wild receive only the place in the plan
    std::unique_ptr<Layout> layout;
    int request = -1;  // index, or -1 for a blocking receive
    MPI_Status status{};
};

class Round {
  public:
    explicit Round(uint64_t number)
        : common_(common_random(number)),
          random_(own_random(number)),
          plan_(make_plan(common_, world.size, 6 + 7 * world.size)) {}

    void run() {
        attach_buffer();
        post_early();
        for (int i = 0; i < 3; ++i) poll_one();
        make_blocking_calls();
        shift(common_, random_, channels[0]);
        finish();
        detach_buffer();
        MPI_Barrier(channels[2]);  // wild receives must not get the next round's messages
        for (Receive& receive : receives_) judge(receive);
    }

  private:
    static bool sends(const Message& m) { return m.from == world.rank; }
    static bool receives(const Message& m) { return m.to == world.rank; }

    MPI_Request& new_request() {
        requests_.push_back(MPI_REQUEST_NULL);
        return requests_.back();
    }

    void attach_buffer() {
        size_t bytes = MPI_BSEND_OVERHEAD;
        for (const Message& m : plan_)
            if (sends(m))
                bytes += static_cast<size_t>(m.elements) * element_sent(m).bytes +
                         MPI_BSEND_OVERHEAD + 64;
        buffer_.resize(bytes);
        MPI_Buffer_attach(buffer_.data(), static_cast<int>(bytes));
    }

    void detach_buffer() {
        void* address = nullptr;
        int bytes = 0;
        MPI_Buffer_detach(&address, &bytes);
        check(address == buffer_.data(), "the detached buffer is the attached one");
        check_equal(bytes, static_cast<int64_t>(buffer_.size()), "size of the detached buffer");
    }

    void post_early() {
        for (const Message& m : plan_) {
            if (receives(m) && !m.blocking_receive) post_receive(m);
            if (sends(m) && is_early(m.mode)) send(m);
            if (random_.chance(5)) new_request();  // null requests in between
        }
    }

    Receive& new_receive(const Message& m) {
        const bool wild = m.channel == Channel::wild;
        const int capacity = wild ? max_wild_elements * 2
                                  : m.elements + (random_.chance(50) ? random_.below(50) : 0);
        Receive& receive = receives_.emplace_back();
        receive.message = &m;
        receive.layout = std::make_unique<Layout>(random_, element_sent(m), capacity);
        return receive;
    }

    static int source_of(const Message& m) {
        return m.channel == Channel::wild ? MPI_ANY_SOURCE : m.from;
    }
    int tag_of(const Message& m) {
        const bool any = m.channel != Channel::exact || m.from == MPI_PROC_NULL;
        return any ? MPI_ANY_TAG : m.tag;
    }

    void post_receive(const Message& m) {
        Receive& receive = new_receive(m);
        Layout& layout = *receive.layout;
        receive.request = static_cast<int>(requests_.size());
        MPI_Irecv(layout.address(), layout.count(), layout.type(), source_of(m), tag_of(m),
                  comm_of(m), &new_request());
        layout.free_type();
        if (is_ready(m.mode) && m.from != MPI_PROC_NULL)
            MPI_Isend(nullptr, 0, MPI_BYTE, m.from, m.tag + 1, comm_of(m), &new_request());
    }

    void receive_blocking(const Message& m) {
        Receive& receive = new_receive(m);
        Layout& layout = *receive.layout;
        const bool ignore = m.channel != Channel::wild && random_.chance(30);
        MPI_Recv(layout.address(), layout.count(), layout.type(), source_of(m), tag_of(m),
                 comm_of(m), ignore ? MPI_STATUS_IGNORE : &receive.status);
        layout.free_type();
        if (ignore) receive.message = nullptr;
        if (ignore && m.from != MPI_PROC_NULL) judge_content(m, layout);
    }

    // Wild receives are of ints, so their messages are too.
    static Element element_sent(const Message& m) {
        return m.channel == Channel::wild ? element_of(0) : element_of(m.kind);
    }

    void send(const Message& m) {
        sent_.push_back(std::make_unique<Layout>(random_, element_sent(m), m.elements));
        Layout& layout = *sent_.back();
        layout.fill(m.id, m.elements);
        if (is_ready(m.mode) && m.to != MPI_PROC_NULL)
            MPI_Recv(nullptr, 0, MPI_BYTE, m.to, m.tag + 1, comm_of(m), MPI_STATUS_IGNORE);
        using Nonblocking = decltype(&MPI_Isend);
        using Blocking = decltype(&MPI_Send);
        const auto post = [&](Nonblocking call) {
            call(layout.address(), layout.count(), layout.type(), m.to, m.tag, comm_of(m),
                 &new_request());
        };
        const auto block = [&](Blocking call) {
            call(layout.address(), layout.count(), layout.type(), m.to, m.tag, comm_of(m));
        };
        switch (m.mode) {
            case SendMode::isend:
                post(MPI_Isend);
                break;
            case SendMode::issend:
                post(MPI_Issend);
                break;
            case SendMode::ibsend:
                post(MPI_Ibsend);
                break;
            case SendMode::irsend:
                post(MPI_Irsend);
                break;
            case SendMode::send:
                block(MPI_Send);
                break;
            case SendMode::ssend:
                block(MPI_Ssend);
                break;
            case SendMode::bsend:
                block(MPI_Bsend);
                break;
            case SendMode::rsend:
                block(MPI_Rsend);
                break;
        }
        layout.free_type();
    }

    void make_blocking_calls() {
        std::vector<const Message*> late;
        for (const Message& m : plan_) {
            if (sends(m) && !is_early(m.mode)) late.push_back(&m);
            if (receives(m) && m.blocking_receive) late.push_back(&m);
        }
        for (size_t i = late.size(); i > 1; --i)
            std::swap(late[i - 1], late[static_cast<size_t>(random_.below(static_cast<int>(i)))]);
        for (const Message* m : late) {
            if (m->blocking_receive && receives(*m)) receive_blocking(*m);
            if (!is_early(m->mode) && sends(*m)) send(*m);
            poll_one();
        }
    }

    // Looks at a request without completing it.
    void poll_one() {
        if (requests_.empty()) return;
        const int i = random_.below(static_cast<int>(requests_.size()));
        int flag = 0;
        MPI_Request_get_status(requests_[static_cast<size_t>(i)], &flag, MPI_STATUS_IGNORE);
    }

    void finish() {
        bool with_statuses = random_.chance(75);
        for (const Receive& receive : receives_)
            if (receive.message && receive.message->channel == Channel::wild) with_statuses = true;
        Completion completion(requests_);
        completion.finish(random_, with_statuses);
        for (Receive& receive : receives_) {
            if (receive.request < 0) continue;
            receive.status = completion.status(static_cast<size_t>(receive.request));
            if (with_statuses) continue;
            if (receive.message->from != MPI_PROC_NULL)
                judge_content(*receive.message, *receive.layout);
            receive.message = nullptr;
        }
    }

    static void judge_content(const Message& m, const Layout& layout) {
        layout.check_content(m.id, m.elements, "received element (index)");
        topic("without status").add_unordered(layout.hash(m.elements));
    }

    // The k-th wild message of a source is the k-th that it sent: messages do not overtake.
    const Message& next_wild(int source) {
        size_t& at = wild_position_[source];
        while (plan_[at].channel != Channel::wild || plan_[at].from != source ||
               plan_[at].to != world.rank)
            check(++at < plan_.size(), "a wild message that was sent");
        return plan_[at++];
    }

    // MPI_Irecv of MPICH 4.0.2 gives source 0 and tag 0 here, MPI_Recv what the standard says.
    static void judge_null(const Receive& receive, int count) {
        check_equal(count, 0, "count from MPI_PROC_NULL");
        if (receive.request >= 0) return;
        check_equal(receive.status.MPI_SOURCE, MPI_PROC_NULL, "source");
        check_equal(receive.status.MPI_TAG, MPI_ANY_TAG, "tag from MPI_PROC_NULL");
    }

    void judge(Receive& receive) {
        if (receive.message == nullptr) return;
        const bool wild = receive.message->channel == Channel::wild;
        const Message& m = wild ? next_wild(receive.status.MPI_SOURCE) : *receive.message;
        const MPI_Status& status = receive.status;
        const MPI_Datatype type = element_sent(m).type;
        int count = -1;
        MPI_Get_count(&status, type, &count);
        if (m.from == MPI_PROC_NULL) return judge_null(receive, count);
        check_equal(status.MPI_SOURCE, m.from, "source");
        check_equal(status.MPI_TAG, m.tag, "tag");
        check_equal(count, m.elements, "count");
        receive.layout->check_content(m.id, count, "received element (index)");
        const uint64_t hash = hash_of(status, type) ^ receive.layout->hash(count);
        if (wild)
            topic("wild").add_unordered(hash);
        else
            topic("exact").add(hash);
    }

    Random common_;
    Random random_;
    std::vector<Message> plan_;
    std::vector<MPI_Request> requests_;
    std::deque<Receive> receives_;  // in the order of posting
    std::vector<std::unique_ptr<Layout>> sent_;
    std::vector<char> buffer_;
    std::map<int, size_t> wild_position_;
};

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    channels[0] = MPI_COMM_WORLD;
    MPI_Comm_dup(MPI_COMM_WORLD, &channels[1]);
    MPI_Comm_dup(MPI_COMM_WORLD, &channels[2]);
    for (uint64_t number = 0; number < 8; ++number) Round(number).run();
    MPI_Comm_free(&channels[1]);
    MPI_Comm_free(&channels[2]);
    return end();
}
