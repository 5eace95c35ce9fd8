// SPDX-License-Identifier: BSD-3-Clause
// The table of layouts of published codes, one class for each code. Random places are the same in
// every run. Arrays are in the codes' order: C writes a Fortran array's indices backwards.
//
// The codes are those of Schneider, Gerstenberger and Hoefler, "Micro-applications for
// communication data access patterns and MPI datatypes" (EuroMPI 2012). fft2 is as in Hoefler and
// Gottlieb, "Parallel zero-copy algorithms for fast Fourier transform and conjugate gradient using
// MPI datatypes" (EuroMPI 2010).
#include "application_layouts.hpp"

#include <algorithm>
#include <complex>
#include <cstring>
#include <random>

namespace vecmpi::bench {
namespace {

// ---- datatypes ----------------------------------------------------------------------------------

MPI_Datatype contiguous_of(int count, MPI_Datatype element) {
    MPI_Datatype type;
    MPI_Type_contiguous(count, element, &type);
    return type;
}

MPI_Datatype vector_of(int count, int block, int stride, MPI_Datatype element) {
    MPI_Datatype type;
    MPI_Type_vector(count, block, stride, element, &type);
    return type;
}

// Frees `inner`, as the next ones do.
MPI_Datatype hvector_of(int count, std::size_t stride_bytes, MPI_Datatype inner) {
    MPI_Datatype type;
    MPI_Type_create_hvector(count, 1, static_cast<MPI_Aint>(stride_bytes), inner, &type);
    MPI_Type_free(&inner);
    return type;
}

MPI_Datatype resized_to(std::size_t bytes, MPI_Datatype inner) {
    MPI_Datatype type;
    MPI_Type_create_resized(inner, 0, static_cast<MPI_Aint>(bytes), &type);
    MPI_Type_free(&inner);
    return type;
}

// `count` elements at each place; places are counted in so many.
MPI_Datatype at_places(const std::vector<int>& places, int count, MPI_Datatype element) {
    MPI_Datatype point = contiguous_of(count, element), type;
    MPI_Type_create_indexed_block(static_cast<int>(places.size()), 1, places.data(), point, &type);
    MPI_Type_free(&point);
    return type;
}

struct Part {
    const void* address;
    MPI_Datatype type;
};

// Absolute addresses: sent from MPI_BOTTOM.
MPI_Datatype struct_of(std::vector<Part> parts) {
    std::vector<int> ones(parts.size(), 1);
    std::vector<MPI_Aint> addresses(parts.size());
    std::vector<MPI_Datatype> types;
    for (std::size_t i = 0; i < parts.size(); i++) {
        MPI_Get_address(parts[i].address, &addresses[i]);
        types.push_back(parts[i].type);
    }
    MPI_Datatype type;
    MPI_Type_create_struct(static_cast<int>(parts.size()), ones.data(), addresses.data(),
                           types.data(), &type);
    for (MPI_Datatype& part : types) MPI_Type_free(&part);
    return type;
}

TypedEnds halo(const void* buffer, MPI_Datatype type) {
    MPI_Type_commit(&type);
    return {buffer, const_cast<void*>(buffer), type, type};
}

// ---- arrays and loops ---------------------------------------------------------------------------

// `each(visit)` of a code goes through its elements as a loop that packs would; packing and
// unpacking are made of it.
template <typename Code, typename T>
class Arrays : public ApplicationLayout {
  public:
    std::size_t bytes() override {
        std::size_t count = 0;
        code().each([&](T&) { count++; });
        return sizeof(T) * count;
    }
    void pack(char* packed) override {
        T* out = reinterpret_cast<T*>(packed);
        code().each([&](T& element) { *out++ = element; });
    }
    void unpack(const char* packed) override {
        const T* in = reinterpret_cast<const T*>(packed);
        code().each([&](T& element) { element = *in++; });
    }
    void fill(unsigned seed) override {
        for (std::vector<T>& array : arrays_) {
            auto* bytes = reinterpret_cast<unsigned char*>(array.data());
            for (std::size_t i = 0; i < sizeof(T) * array.size(); i++)
                bytes[i] = static_cast<unsigned char>((i + seed) * 2654435761u >> 13);
            seed += 1009;
        }
    }
    void clear_received() override {
        for (std::vector<T>& array : arrays_) std::fill(array.begin(), array.end(), T{});
    }
    void pack_received(char* packed) override { pack(packed); }

  protected:
    T* add_array(std::size_t elements) { return arrays_.emplace_back(elements).data(); }

  private:
    Code& code() { return static_cast<Code&>(*this); }
    std::vector<std::vector<T>> arrays_;
};

// WRF: halos of all fields of a patch in one message. Fields are (i, j), (i, k, j) and (i, k, j,
// species) of a Fortran program, i fastest.
class Wrf : public Arrays<Wrf, float> {
  public:
    enum class Form { vectors, subarrays };
    static constexpr int width = 3;  // of a halo

    // Points in x and y without halos, levels, species.
    Wrf(const ApplicationDims& dims, char direction, Form form) : form_(form) {
        const auto [nx, ny, levels, species] = dims;
        const int part_y = direction == 'y' ? width : ny, part_x = direction == 'x' ? width : nx;
        const Field flat{{1, ny + 2 * width, 1, nx + 2 * width}, {1, part_y, 1, part_x}, 2};
        Field volume = flat;
        volume.sizes[2] = volume.parts[2] = levels;
        volume.dims = 3;
        Field volumes = volume;
        volumes.sizes[0] = volumes.parts[0] = species;
        volumes.dims = 4;
        for (int i = 0; i < 4; i++) add(flat);
        for (int i = 0; i < 3; i++) add(volume);
        for (int i = 0; i < 2; i++) add(volumes);
    }

    template <typename Visit>
    void each(Visit visit) {
        for (const Field& field : fields_) {
            const auto [species, part_y, levels, part_x] = field.parts;
            for (int s = 0; s < species; s++)
                for (int j = 0; j < part_y; j++)
                    for (int k = 0; k < levels; k++) {
                        float* row = field.data + field.index(s, width + j, k, width);
                        for (int i = 0; i < part_x; i++) visit(row[i]);
                    }
        }
    }

    TypedEnds make_types() const override {
        std::vector<Part> parts;
        for (const Field& field : fields_)
            parts.push_back(form_ == Form::vectors
                                ? Part{field.data + field.index(0, width, 0, width), vectors(field)}
                                : Part{field.data, subarray(field)});
        return halo(MPI_BOTTOM, struct_of(parts));
    }

  private:
    struct Field {
        std::array<int, 4> sizes, parts;  // species, y, level, x; 1 where the field has no such
        int dims;
        float* data = nullptr;
        std::size_t index(int s, int j, int k, int i) const {
            return ((static_cast<std::size_t>(s) * static_cast<std::size_t>(sizes[1]) +
                     static_cast<std::size_t>(j)) *
                        static_cast<std::size_t>(sizes[2]) +
                    static_cast<std::size_t>(k)) *
                       static_cast<std::size_t>(sizes[3]) +
                   static_cast<std::size_t>(i);
        }
    };

    void add(Field field) {
        field.data = add_array(field.index(field.sizes[0], 0, 0, 0));
        fields_.push_back(field);
    }

    static MPI_Datatype vectors(const Field& field) {
        const auto [species, part_y, levels, part_x] = field.parts;
        const std::size_t row = sizeof(float) * field.index(0, 1, 0, 0);
        if (field.dims == 2) return vector_of(part_y, part_x, field.sizes[3], MPI_FLOAT);
        MPI_Datatype type = vector_of(levels, part_x, field.sizes[3], MPI_FLOAT);
        type = hvector_of(part_y, row, type);
        if (field.dims == 3) return type;
        return hvector_of(species, sizeof(float) * field.index(1, 0, 0, 0), type);
    }

    static MPI_Datatype subarray(const Field& field) {
        const std::array<int, 4> starts{0, width, 0, width};
        std::vector<int> sizes, parts, begins;
        for (std::size_t d = 0; d < 4; d++) {
            if ((d == 0 && field.dims < 4) || (d == 2 && field.dims < 3)) continue;
            sizes.push_back(field.sizes[d]);
            parts.push_back(field.parts[d]);
            begins.push_back(starts[d]);
        }
        MPI_Datatype type;
        MPI_Type_create_subarray(field.dims, sizes.data(), parts.data(), begins.data(), MPI_ORDER_C,
                                 MPI_FLOAT, &type);
        return type;
    }

    Form form_;
    std::vector<Field> fields_;
};

// Rising, one of `among` on average: a list made by going through all particles.
std::vector<int> rising_places(int count, int among) {
    std::minstd_rand random(7);
    std::vector<int> places;
    for (int i = 0; i < count; i++)
        places.push_back(i * among + static_cast<int>(random() % static_cast<unsigned>(among)));
    return places;
}

// In no order: points of a mesh, numbered by element.
std::vector<int> shuffled_places(int count, int among, unsigned seed) {
    std::vector<int> places = rising_places(count, among);
    std::shuffle(places.begin(), places.end(), std::minstd_rand(seed));
    return places;
}

constexpr int one_of = 8;  // particles, or points of the mesh, is sent

// LAMMPS: particles near a border. Positions are three doubles a particle; tag, type and mask one
// each, with the atom style `full` molecule and charge too. Integers are kept as doubles.
template <int singles>
class Lammps : public Arrays<Lammps<singles>, double> {
  public:
    explicit Lammps(const ApplicationDims& dims) : list_(rising_places(dims[0], one_of)) {
        const auto particles = static_cast<std::size_t>(dims[0]) * one_of;
        positions_ = this->add_array(3 * particles);
        for (double*& single : singles_) single = this->add_array(particles);
    }

    template <typename Visit>
    void each(Visit visit) {
        for (const int particle : list_) {
            double* position = positions_ + std::ptrdiff_t{3} * particle;
            visit(position[0]);
            visit(position[1]);
            visit(position[2]);
            for (double* single : singles_) visit(single[particle]);
        }
    }

    TypedEnds make_types() const override {
        std::vector<Part> parts{{positions_, at_places(list_, 3, MPI_DOUBLE)}};
        for (double* single : singles_) parts.push_back({single, at_places(list_, 1, MPI_DOUBLE)});
        return halo(MPI_BOTTOM, struct_of(parts));
    }

  private:
    std::vector<int> list_;
    double* positions_;
    std::array<double*, singles> singles_;
};

// SPECFEM3D_GLOBE, outer core: one float at each point that two processes share.
class SpecfemOuterCore : public Arrays<SpecfemOuterCore, float> {
  public:
    explicit SpecfemOuterCore(const ApplicationDims& dims)
        : list_(shuffled_places(dims[0], one_of, 7)),
          field_(add_array(static_cast<std::size_t>(dims[0]) * one_of)) {}

    template <typename Visit>
    void each(Visit visit) {
        for (const int point : list_) visit(field_[point]);
    }

    TypedEnds make_types() const override { return halo(field_, at_places(list_, 1, MPI_FLOAT)); }

  private:
    std::vector<int> list_;
    float* field_;
};

// SPECFEM3D_GLOBE, crust and mantle: three floats at each shared point, and one at those of a
// second array, in one message.
class SpecfemCrustMantle : public Arrays<SpecfemCrustMantle, float> {
  public:
    explicit SpecfemCrustMantle(const ApplicationDims& dims)
        : list_(shuffled_places(dims[0], one_of, 7)),
          second_list_(shuffled_places(dims[1], one_of, 8)),
          field_(add_array(3 * static_cast<std::size_t>(dims[0]) * one_of)),
          second_(add_array(static_cast<std::size_t>(dims[1]) * one_of)) {}

    template <typename Visit>
    void each(Visit visit) {
        for (const int point : list_)
            for (int c = 0; c < 3; c++) visit(field_[std::ptrdiff_t{3} * point + c]);
        for (const int point : second_list_) visit(second_[point]);
    }

    TypedEnds make_types() const override {
        return halo(MPI_BOTTOM, struct_of({{field_, at_places(list_, 3, MPI_FLOAT)},
                                           {second_, at_places(second_list_, 1, MPI_FLOAT)}}));
    }

  private:
    std::vector<int> list_, second_list_;
    float *field_, *second_;
};

// SPECFEM3D_GLOBE, three floats of one of the two vectors that each point has.
class SpecfemVectors : public Arrays<SpecfemVectors, float> {
  public:
    explicit SpecfemVectors(const ApplicationDims& dims)
        : points_(dims[0]), field_(add_array(6 * static_cast<std::size_t>(dims[0]))) {}

    template <typename Visit>
    void each(Visit visit) {
        for (int point = 0; point < points_; point++)
            for (int c = 0; c < 3; c++) visit(field_[std::ptrdiff_t{6} * point + c]);
    }

    TypedEnds make_types() const override {
        return halo(field_, vector_of(points_, 3, 6, MPI_FLOAT));
    }

  private:
    int points_;
    float* field_;
};

struct Su3Matrix {
    float parts[3][3][2];  // 3 x 3 complex
};

// MILC: the gauge links in one direction of all sites with one z. Even sites come before odd ones,
// in the order t, z, y, x; a site has a link in each of four directions.
class Milc : public Arrays<Milc, Su3Matrix> {
  public:
    explicit Milc(const ApplicationDims& dims)
        : plane_(dims[0] * dims[1] / 2),
          nz_(dims[2]),
          nt_(dims[3]),
          links_(add_array(parity_stride() * 2)) {}

    template <typename Visit>
    void each(Visit visit) {
        for (std::size_t parity = 0; parity < 2; parity++)
            for (int t = 0; t < nt_; t++) {
                Su3Matrix* slice =
                    links_ + parity * parity_stride() + static_cast<std::size_t>(t) * time_stride();
                for (int site = 0; site < plane_; site++)
                    visit(slice[std::ptrdiff_t{directions} * site]);
            }
    }

    TypedEnds make_types() const override {
        MPI_Datatype matrix = contiguous_of(9, MPI_C_FLOAT_COMPLEX);
        MPI_Datatype type = vector_of(plane_, 1, directions, matrix);
        MPI_Type_free(&matrix);
        type = hvector_of(nt_, sizeof(Su3Matrix) * time_stride(), type);
        type = hvector_of(2, sizeof(Su3Matrix) * parity_stride(), type);
        return halo(links_, type);
    }

  private:
    static constexpr int directions = 4;
    std::size_t time_stride() const {
        return static_cast<std::size_t>(plane_) * static_cast<std::size_t>(nz_) * directions;
    }
    std::size_t parity_stride() const { return static_cast<std::size_t>(nt_) * time_stride(); }

    int plane_, nz_, nt_;  // sites of one parity in a plane of x and y; lengths
    Su3Matrix* links_;
};

// NAS MG: inner points of a face of u[n3][n2][n1], normal to one axis.
template <char axis>
class NasMg : public Arrays<NasMg<axis>, double> {
  public:
    explicit NasMg(const ApplicationDims& dims)
        : n1_(dims[0]), n2_(dims[1]), n3_(dims[2]), u_(this->add_array(index(n3_, 0, 0))) {}

    template <typename Visit>
    void each(Visit visit) {
        if constexpr (axis == 'x')
            for (int k = 1; k < n3_ - 1; k++)
                for (int j = 1; j < n2_ - 1; j++) visit(u_[index(k, j, n1_ - 2)]);
        if constexpr (axis == 'y')
            for (int k = 1; k < n3_ - 1; k++)
                for (int i = 1; i < n1_ - 1; i++) visit(u_[index(k, n2_ - 2, i)]);
        if constexpr (axis == 'z')
            for (int j = 1; j < n2_ - 1; j++)
                for (int i = 1; i < n1_ - 1; i++) visit(u_[index(n3_ - 2, j, i)]);
    }

    TypedEnds make_types() const override {
        if constexpr (axis == 'x')
            return halo(u_ + index(1, 1, n1_ - 2),
                        hvector_of(n3_ - 2, sizeof(double) * index(1, 0, 0),
                                   vector_of(n2_ - 2, 1, n1_, MPI_DOUBLE)));
        if constexpr (axis == 'y')
            return halo(u_ + index(1, n2_ - 2, 1),
                        vector_of(n3_ - 2, n1_ - 2, n1_ * n2_, MPI_DOUBLE));
        if constexpr (axis == 'z')
            return halo(u_ + index(n3_ - 2, 1, 1), vector_of(n2_ - 2, n1_ - 2, n1_, MPI_DOUBLE));
    }

  private:
    std::size_t index(int k, int j, int i) const {
        return (static_cast<std::size_t>(k) * static_cast<std::size_t>(n2_) +
                static_cast<std::size_t>(j)) *
                   static_cast<std::size_t>(n1_) +
               static_cast<std::size_t>(i);
    }
    int n1_, n2_, n3_;
    double* u_;
};

// NAS LU: two layers of grid points with five doubles each, of rsd[nz][ny + 4][nx + 4][5], next to
// the border in x or y.
template <char axis>
class NasLu : public Arrays<NasLu<axis>, double> {
  public:
    explicit NasLu(const ApplicationDims& dims)
        : nx_(dims[0]), ny_(dims[1]), nz_(dims[2]), rsd_(this->add_array(index(nz_, 0, 0))) {}

    template <typename Visit>
    void each(Visit visit) {
        const int rows = axis == 'x' ? ny_ : layers, points = axis == 'x' ? layers : nx_;
        for (int k = 0; k < nz_; k++)
            for (int j = 0; j < rows; j++)
                for (int i = 0; i < points; i++)
                    for (std::size_t m = 0; m < variables; m++)
                        visit(rsd_[index(k, layers + j, layers + i) + m]);
    }

    TypedEnds make_types() const override {
        const int rows = axis == 'x' ? ny_ : layers, points = axis == 'x' ? layers : nx_;
        return halo(rsd_ + index(0, layers, layers),
                    hvector_of(nz_, sizeof(double) * index(1, 0, 0),
                               vector_of(rows, variables * points, variables * (nx_ + 2 * layers),
                                         MPI_DOUBLE)));
    }

  private:
    static constexpr int layers = 2, variables = 5;
    std::size_t index(int k, int j, int i) const {
        return ((static_cast<std::size_t>(k) * static_cast<std::size_t>(ny_ + 2 * layers) +
                 static_cast<std::size_t>(j)) *
                    static_cast<std::size_t>(nx_ + 2 * layers) +
                static_cast<std::size_t>(i)) *
               variables;
    }
    int nx_, ny_, nz_;
    double* rsd_;
};

// A matrix of n x n, half of its rows on each rank, is transposed: each rank sends a block of its
// rows to each, and puts those that come down its columns.
class Fft2 : public Arrays<Fft2, std::complex<double>> {
  public:
    using Number = std::complex<double>;

    explicit Fft2(const ApplicationDims& dims)
        : n_(static_cast<std::size_t>(dims[0])),
          half_(n_ / 2),
          rows_(add_array(n_ * half_)),
          transposed_(add_array(n_ * half_)) {}

    // Block of one rank after the other, in each row after row.
    template <typename Visit>
    void each(Visit visit) {
        for (std::size_t block = 0; block < 2; block++)
            for (std::size_t i = 0; i < half_; i++)
                for (std::size_t j = 0; j < half_; j++) visit(rows_[i * n_ + block * half_ + j]);
    }

    void unpack(const char* packed) override {
        const auto* in = reinterpret_cast<const Number*>(packed);
        each_received([&](Number& number) { number = *in++; });
    }
    void pack_received(char* packed) override {
        auto* out = reinterpret_cast<Number*>(packed);
        each_received([&](Number& number) { *out++ = number; });
    }
    void clear_received() override { std::fill_n(transposed_, n_ * half_, Number{}); }

    TypedEnds make_types() const override {
        const int half = static_cast<int>(half_), n = static_cast<int>(n_);
        const std::size_t block = sizeof(Number) * half_;
        MPI_Datatype out = vector_of(half, half, n, MPI_C_DOUBLE_COMPLEX);
        MPI_Datatype column = vector_of(half, 1, n, MPI_C_DOUBLE_COMPLEX);
        MPI_Datatype in = hvector_of(half, sizeof(Number), column);
        out = resized_to(block, out);
        in = resized_to(block, in);
        MPI_Type_commit(&out);
        MPI_Type_commit(&in);
        return {rows_, transposed_, out, in};
    }

  private:
    template <typename Visit>
    void each_received(Visit visit) {
        for (std::size_t block = 0; block < 2; block++)
            for (std::size_t i = 0; i < half_; i++)
                for (std::size_t j = 0; j < half_; j++)
                    visit(transposed_[j * n_ + block * half_ + i]);
    }

    std::size_t n_, half_;
    Number *rows_, *transposed_;
};

// ---- the table ----------------------------------------------------------------------------------

using Made = std::unique_ptr<ApplicationLayout>;

template <typename Code>
Made make(const ApplicationDims& dims) {
    return std::make_unique<Code>(dims);
}

template <char direction, Wrf::Form form>
Made make_wrf(const ApplicationDims& dims) {
    return std::make_unique<Wrf>(dims, direction, form);
}

using ThreeSizes = std::array<ApplicationDims, 3>;
constexpr ThreeSizes wrf_dims{{{8, 8, 8, 2}, {32, 32, 16, 2}, {96, 96, 32, 2}}};
constexpr ThreeSizes particles{{{64}, {640}, {4096}}};

}  // namespace

void free_types(TypedEnds& ends) {
    const bool same = ends.in_type == ends.out_type;
    MPI_Type_free(&ends.out_type);
    if (!same) MPI_Type_free(&ends.in_type);
}

const std::vector<ApplicationRow>& application_table() {
    using Form = Wrf::Form;
    static const std::vector<ApplicationRow> table{
        {"wrf_x_vec", false, make_wrf<'x', Form::vectors>, wrf_dims},
        {"wrf_y_vec", false, make_wrf<'y', Form::vectors>, wrf_dims},
        {"wrf_x_sa", false, make_wrf<'x', Form::subarrays>, wrf_dims},
        {"wrf_y_sa", false, make_wrf<'y', Form::subarrays>, wrf_dims},
        {"lammps_full", false, make<Lammps<5>>, particles},
        {"lammps_atomic", false, make<Lammps<3>>, particles},
        {"specfem3d_oc", false, make<SpecfemOuterCore>, {{{512}, {8192}, {40960}}}},
        {"specfem3d_cm",
         false,
         make<SpecfemCrustMantle>,
         {{{256, 64}, {2560, 640}, {20480, 5120}}}},
        {"specfem3d_mt", false, make<SpecfemVectors>, {{{256}, {3072}, {24576}}}},
        {"milc_su3_z", false, make<Milc>, {{{4, 4, 4, 4}, {8, 8, 8, 8}, {16, 16, 16, 16}}}},
        {"nas_mg_x", false, make<NasMg<'x'>>, {{{18, 18, 18}, {66, 66, 66}, {66, 258, 130}}}},
        {"nas_mg_y", false, make<NasMg<'y'>>, {{{18, 18, 18}, {66, 66, 66}, {258, 66, 130}}}},
        {"nas_mg_z", false, make<NasMg<'z'>>, {{{18, 18, 18}, {66, 66, 66}, {258, 130, 66}}}},
        {"nas_lu_x", false, make<NasLu<'x'>>, {{{8, 8, 8}, {24, 24, 24}, {64, 64, 64}}}},
        {"nas_lu_y", false, make<NasLu<'y'>>, {{{8, 8, 8}, {24, 24, 24}, {64, 64, 64}}}},
        {"fft2", true, make<Fft2>, {{{24}, {64}, {192}}}},
    };
    return table;
}

}  // namespace vecmpi::bench
