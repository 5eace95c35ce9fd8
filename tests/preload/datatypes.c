// SPDX-License-Identifier: BSD-3-Clause
// Derived datatypes, used a known number of times: messages of a vector, a struct that is packed,
// and structs of absolute addresses, which are made anew for each message.
#include <stddef.h>
#include <string.h>

#include "report.h"

enum { messages = 200, packs = 100, halves = 50, points = 1000 };

struct Particle {
    int id;
    double place[3];
    char kind;
};

static MPI_Datatype particle(void) {
    const int lengths[] = {1, 3, 1};
    const MPI_Aint places[] = {offsetof(struct Particle, id), offsetof(struct Particle, place),
                               offsetof(struct Particle, kind)};
    const MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE, MPI_CHAR};
    MPI_Datatype fields, whole;
    MPI_Type_create_struct(3, lengths, places, types, &fields);
    MPI_Type_create_resized(fields, 0, sizeof(struct Particle), &whole);
    MPI_Type_commit(&whole);
    MPI_Type_free(&fields);
    return whole;
}

// Both ways between the ranks of a pair: each rank sends and receives.
static void exchange(void* from, void* to, int count, MPI_Datatype type) {
    const int other = my_rank() ^ 1;
    MPI_Request request;
    MPI_Irecv(to, count, type, other, 0, MPI_COMM_WORLD, &request);
    MPI_Send(from, count, type, other, 0, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void send_columns(void) {
    static double from[2 * points], to[2 * points];
    MPI_Datatype column;
    int wrong = 0;
    for (int i = 0; i < 2 * points; ++i) from[i] = i + my_rank();
    MPI_Type_vector(points, 1, 2, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    for (int i = 0; i < messages; ++i) exchange(from, to, 1, column);
    for (int i = 0; i < 2 * points; ++i) wrong += to[i] != (i % 2 == 0 ? i + (my_rank() ^ 1) : 0);
    fact("columns: %d wrong", wrong);
    MPI_Type_free(&column);
}

static void pack_particles(void) {
    static struct Particle from[points], to[points];
    static char packed[points * sizeof(struct Particle)];
    const MPI_Datatype type = particle();
    MPI_Datatype mine = type;
    int position = 0, wrong = 0;
    for (int i = 0; i < points; ++i) from[i] = (struct Particle){i, {i, 2 * i, 3 * i}, (char)i};
    for (int i = 0; i < packs; ++i) {
        position = 0;
        MPI_Pack(from, points, type, packed, sizeof packed, &position, MPI_COMM_WORLD);
        position = 0;
        MPI_Unpack(packed, sizeof packed, &position, to, points, type, MPI_COMM_WORLD);
    }
    for (int i = 0; i < points; ++i)
        wrong += to[i].id != i || to[i].place[2] != 3 * i || to[i].kind != (char)i;
    fact("particles: %d wrong, %d bytes each", wrong, position / points);
    MPI_Type_free(&mine);
}

// The halves of two arrays, as programs send them from MPI_BOTTOM.
static void send_halves(void) {
    static int left[points], right[points], to[2 * points];
    const int lengths[] = {points / 2, points / 2};
    MPI_Aint places[2];
    MPI_Get_address(left, &places[0]);
    MPI_Get_address(right + points / 2, &places[1]);
    for (int i = 0; i < halves; ++i) {
        MPI_Datatype type;
        MPI_Type_create_hindexed(2, lengths, places, MPI_INT, &type);
        MPI_Type_commit(&type);
        memset(to, 0, sizeof to);
        left[0] = i;
        MPI_Sendrecv(MPI_BOTTOM, 1, type, my_rank() ^ 1, 1, to, points, MPI_INT, my_rank() ^ 1, 1,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Type_free(&type);
    }
    fact("halves: %d", to[0]);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    fact("%d ranks", ranks());
    send_columns();
    pack_particles();
    send_halves();
    MPI_Finalize();
    return 0;
}
