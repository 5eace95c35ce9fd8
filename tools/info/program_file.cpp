// SPDX-License-Identifier: BSD-3-Clause
// Reads ELF headers and dynamic sections from the file. The libraries are listed by glibc's loader
// itself, so that search paths mean what they mean when the program runs. (Its --list stops where
// one is missing.)
#include "program_file.hpp"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string_view>

#include "child_output.hpp"

namespace vecmpi::info {
namespace {

#if defined(__x86_64__)
constexpr uint16_t this_machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t this_machine = EM_AARCH64;
#endif

// ---- a file in memory --------------------------------------------------------------------------

class MappedFile {
  public:
    explicit MappedFile(const std::string& path) {
        const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
        struct stat status {};
        if (file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
            status.st_size > 0) {
            bytes_ = static_cast<size_t>(status.st_size);
            data_ = mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, file, 0);
        }
        if (file >= 0) close(file);
        if (data_ == MAP_FAILED) bytes_ = 0;
    }
    ~MappedFile() {
        if (bytes_ != 0) munmap(data_, bytes_);
    }
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    // Null where the file is too short.
    template <class Type>
    const Type* at(uint64_t offset, uint64_t number = 1) const noexcept {
        if (offset > bytes_ || number > (bytes_ - offset) / sizeof(Type)) return nullptr;
        if (offset % alignof(Type) != 0) return nullptr;
        return reinterpret_cast<const Type*>(static_cast<const char*>(data_) + offset);
    }
    // "" where there is none.
    std::string text_at(uint64_t offset) const {
        if (offset >= bytes_) return {};
        const char* const text = static_cast<const char*>(data_) + offset;
        return {text, strnlen(text, bytes_ - offset)};
    }
    std::string_view beginning() const noexcept {
        return {static_cast<const char*>(data_), std::min<size_t>(bytes_, 256)};
    }

  private:
    void* data_ = MAP_FAILED;
    size_t bytes_ = 0;
};

// ---- ELF ---------------------------------------------------------------------------------------

class ElfFile {
  public:
    explicit ElfFile(const std::string& path) : file_(path) {
        const auto* const ident = file_.at<unsigned char>(0, EI_NIDENT);
        is_elf_ = ident != nullptr && std::memcmp(ident, ELFMAG, SELFMAG) == 0;
        header_ = file_.at<Elf64_Ehdr>(0);
        is_ours_ = is_elf_ && header_ != nullptr && ident[EI_CLASS] == ELFCLASS64 &&
                   header_->e_machine == this_machine;
        if (!is_ours_) return;
        segments_ = file_.at<Elf64_Phdr>(header_->e_phoff, header_->e_phnum);
        if (const Elf64_Phdr* dynamic = segment(PT_DYNAMIC)) {
            entries_ = dynamic->p_filesz / sizeof(Elf64_Dyn);
            dynamic_ = file_.at<Elf64_Dyn>(dynamic->p_offset, entries_);
        }
    }

    const MappedFile& file() const noexcept { return file_; }
    bool is_elf() const noexcept { return is_elf_; }
    bool is_ours() const noexcept { return is_ours_; }
    bool is_dynamic() const noexcept { return dynamic_ != nullptr; }
    std::string loader() const {
        const Elf64_Phdr* const name = segment(PT_INTERP);
        return name == nullptr ? std::string() : file_.text_at(name->p_offset);
    }
    bool is_program() const noexcept { return (value_of(DT_FLAGS_1) & DF_1_PIE) != 0; }

    std::vector<std::string> needed() const {
        std::vector<std::string> names;
        for (size_t i = 0; i < entries() && dynamic_[i].d_tag != DT_NULL; ++i)
            if (dynamic_[i].d_tag == DT_NEEDED) names.push_back(string(dynamic_[i].d_un.d_val));
        return names;
    }

    // Undefined symbols of the dynamic table. A name with underscore is Fortran's.
    bool imports(const std::vector<std::string_view>& names) const {
        const auto* const sections = file_.at<Elf64_Shdr>(header_->e_shoff, header_->e_shnum);
        if (sections == nullptr) return false;
        for (size_t i = 0; i < header_->e_shnum; ++i)
            if (sections[i].sh_type == SHT_DYNSYM && imports(sections[i], names)) return true;
        return false;
    }

  private:
    const Elf64_Phdr* segment(uint32_t type) const noexcept {
        for (size_t i = 0; segments_ != nullptr && i < header_->e_phnum; ++i)
            if (segments_[i].p_type == type) return &segments_[i];
        return nullptr;
    }
    size_t entries() const noexcept { return dynamic_ == nullptr ? 0 : entries_; }
    uint64_t value_of(int64_t tag) const noexcept {
        for (size_t i = 0; i < entries() && dynamic_[i].d_tag != DT_NULL; ++i)
            if (dynamic_[i].d_tag == tag) return dynamic_[i].d_un.d_val;
        return 0;
    }
    uint64_t offset_of(uint64_t address) const noexcept {
        for (size_t i = 0; segments_ != nullptr && i < header_->e_phnum; ++i) {
            const Elf64_Phdr& part = segments_[i];
            if (part.p_type == PT_LOAD && address >= part.p_vaddr &&
                address - part.p_vaddr < part.p_filesz)
                return address - part.p_vaddr + part.p_offset;
        }
        return UINT64_MAX;
    }
    std::string string(uint64_t index) const {
        const uint64_t table = offset_of(value_of(DT_STRTAB));
        return table == UINT64_MAX ? std::string() : file_.text_at(table + index);
    }
    bool imports(const Elf64_Shdr& table, const std::vector<std::string_view>& names) const {
        const size_t number = table.sh_size / sizeof(Elf64_Sym);
        const auto* const symbols = file_.at<Elf64_Sym>(table.sh_offset, number);
        for (size_t i = 0; symbols != nullptr && i < number; ++i) {
            if (symbols[i].st_shndx != SHN_UNDEF) continue;
            const std::string name = string(symbols[i].st_name);
            if (std::find(names.begin(), names.end(), name) != names.end()) return true;
        }
        return false;
    }

    MappedFile file_;
    const Elf64_Ehdr* header_ = nullptr;
    const Elf64_Phdr* segments_ = nullptr;
    const Elf64_Dyn* dynamic_ = nullptr;
    size_t entries_ = 0;
    bool is_elf_ = false, is_ours_ = false;
};

// ---- where it lies -----------------------------------------------------------------------------

// As a shell finds it.
std::string find_in_path(const std::string& name) {
    if (name.find('/') != std::string::npos) return name;
    const char* const path = std::getenv("PATH");
    std::istringstream folders(path == nullptr ? "/usr/bin:/bin" : path);
    for (std::string folder; std::getline(folders, folder, ':');) {
        std::string file = (folder.empty() ? "." : folder) + "/" + name;
        if (access(file.c_str(), X_OK) == 0) return file;
    }
    return name;
}

// "#!/usr/bin/env -S python3 -u" -> python3; "" where it is no script.
std::string interpreter_of(std::string_view beginning) {
    if (!beginning.starts_with("#!")) return {};
    std::istringstream line(std::string(beginning.substr(2, beginning.find('\n') - 2)));
    std::string word;
    line >> word;
    if (!word.ends_with("/env")) return word;
    while (line >> word && word.starts_with("-")) {
    }
    return word;
}

bool is_secure(const std::string& path) {
    struct stat status {};
    if (stat(path.c_str(), &status) != 0) return false;
    const bool is_of_others = ((status.st_mode & S_ISUID) != 0 && status.st_uid != getuid()) ||
                              ((status.st_mode & S_ISGID) != 0 && status.st_gid != getgid());
    return is_of_others || getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
}

// ---- what the loader loads ---------------------------------------------------------------------

std::string own_loader() { return ElfFile("/proc/self/exe").loader(); }

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Of a line "  libm.so.6 => /lib/libm.so.6 (0x7f...)", or "=> not found", or without arrow where
// the program names a path.
NeededLibrary library_in(const std::string& line) {
    const size_t arrow = line.find(" => "), begin = line.find_first_not_of(" \t");
    std::string file = line.substr(arrow == std::string::npos ? begin : arrow + 4);
    file.resize(std::min(file.rfind(" ("), file.size()));
    if (arrow == std::string::npos) return {base_name(file), file, {}};
    return {line.substr(begin, arrow - begin), file == "not found" ? "" : file, {}};
}

std::vector<NeededLibrary> libraries_of(const std::string& path, const std::string& loader) {
    std::istringstream lines(output_of_child({loader, path}, {"LD_TRACE_LOADED_OBJECTS=1"}));
    std::vector<NeededLibrary> libraries;
    for (std::string line; std::getline(lines, line);)
        if (line.find_first_not_of(" \t") != std::string::npos)
            libraries.push_back(library_in(line));
    return libraries;
}

bool is_of_glibc(std::string_view soname) {
    for (const std::string_view name :
         {"libc.so.", "libdl.so.", "libm.so.", "libpthread.so.", "ld-"})
        if (soname.starts_with(name)) return true;
    return false;
}

// The library of MPI imports what it likes.
bool is_of_mpi(std::string_view soname) { return soname.starts_with("libmp"); }

void note_imports(const ElfFile& elf, ProgramFile& program) {
    program.loads_more |=
        elf.imports({"dlopen", "dlmopen", "execve", "execv", "execvp", "execvpe", "execl", "execlp",
                     "execle", "fexecve", "posix_spawn", "posix_spawnp", "system", "popen"});
    program.has_sessions |= elf.imports({"MPI_Session_init", "mpi_session_init_"});
    program.has_init |= elf.imports({"MPI_Init", "MPI_Init_thread", "mpi_init_", "mpi_init_thread_",
                                     "mpi_init_f08_", "mpi_init_thread_f08_"});
}

void look_at_libraries(const ElfFile& elf, const std::string& loader, ProgramFile& program) {
    program.needed = elf.needed();
    note_imports(elf, program);
    program.libraries = libraries_of(program.path, loader);
    for (NeededLibrary& library : program.libraries) {
        if (library.path.empty() || is_of_glibc(library.soname)) continue;
        const ElfFile file(library.path);
        if (!file.is_ours()) continue;
        library.needed = file.needed();
        if (!is_of_mpi(library.soname)) note_imports(file, program);
    }
}

ProgramFile::Kind kind_of(const ElfFile& elf, const std::string& loader) {
    using Kind = ProgramFile::Kind;
    if (!elf.is_ours()) return Kind::other_machine;
    if (!elf.is_dynamic()) return Kind::linked_statically;
    if (!elf.loader().empty())
        return base_name(elf.loader()) == base_name(loader) ? Kind::linked_dynamically
                                                            : Kind::other_machine;
    return elf.is_program() ? Kind::linked_statically : Kind::library;
}

bool is_file(const std::string& path) {
    struct stat status {};
    return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
           access(path.c_str(), R_OK) == 0;
}

}  // namespace

ProgramFile look_at_program(const std::string& name) {
    using Kind = ProgramFile::Kind;
    ProgramFile program;
    program.path = find_in_path(name);
    if (access(program.path.c_str(), F_OK) != 0) return program;
    program.kind = Kind::unreadable;
    if (!is_file(program.path)) return program;
    constexpr int most_scripts = 4;  // that are each other's interpreters, as the kernel has it
    for (int i = 0; i < most_scripts; ++i) {
        const std::string interpreter = interpreter_of(MappedFile(program.path).beginning());
        if (interpreter.empty()) break;
        if (program.script.empty()) program.script = program.path;
        program.path = find_in_path(interpreter);
        if (!is_file(program.path)) return program;
    }
    const ElfFile elf(program.path);
    program.kind = Kind::unknown;
    if (!elf.is_elf()) return program;
    const std::string loader = own_loader();
    program.kind = kind_of(elf, loader);
    if (program.kind != Kind::linked_dynamically && program.kind != Kind::library) return program;
    program.is_secure = is_secure(program.path);
    look_at_libraries(elf, loader, program);
    return program;
}

}  // namespace vecmpi::info
