// SPDX-License-Identifier: BSD-3-Clause
// Finds this host's profile and reads it once. Writes what was learned; the rest is vecmpi-tune's.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>

#include "base/api/profile.hpp"
#include "files.hpp"
#include "setting_values.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace vecmpi::base {
namespace {

constexpr size_t most_profile_bytes = size_t{64} << 10;
constexpr const char* fallback = ": the built-in choices are used";

// Keeps letters and digits; all between two words becomes `between`.
std::string words_of(std::string_view text, char between, bool keeps_signs) {
    std::string words;
    for (const char letter : text) {
        const bool is_upper = letter >= 'A' && letter <= 'Z';
        const bool is_kept = is_upper || (letter >= 'a' && letter <= 'z') ||
                             (letter >= '0' && letter <= '9') || (keeps_signs && letter > ' ');
        if (is_kept)
            words += is_upper && !keeps_signs ? static_cast<char>(letter - 'A' + 'a') : letter;
        else if (!words.empty() && words.back() != between)
            words += between;
    }
    if (!words.empty() && words.back() == between) words.pop_back();
    return words;
}

// Returns why there is no text; empty: there is. Does not wait for a pipe's writer.
std::string read_text_of(const std::string& name, std::string& text) {
    const int file = open(name.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (file < 0) return strerrordesc_np(errno);
    struct stat status {};
    std::string why;
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode))
        why = "it is no regular file";
    else if (!read_at_most(file, most_profile_bytes, text))
        why = strerrordesc_np(errno);
    else if (text.size() > most_profile_bytes)
        why = "it is longer than 64 KiB";
    close(file);
    return why;
}

std::string line_text(size_t line) { return line == 0 ? "" : ":" + std::to_string(line); }

LoadedProfile& loaded() noexcept {
    alignas(LoadedProfile) static unsigned char storage[sizeof(LoadedProfile)];
    static LoadedProfile& profile = *new (storage) LoadedProfile();
    return profile;
}

std::vector<std::string> places_for(const std::string& cpu) {
    return profile_places(std::getenv("XDG_CONFIG_HOME"), std::getenv("HOME"), profile_name(cpu));
}

bool is_there(const std::string& file) noexcept { return access(file.c_str(), F_OK) == 0; }

// An empty file may be filled by who learns.
bool has_text(const std::string& file) noexcept {
    struct stat status {};
    return stat(file.c_str(), &status) == 0 && (!S_ISREG(status.st_mode) || status.st_size != 0);
}

std::string file_to_read(const ProfileChoice& choice, const std::string& cpu) {
    using Kind = ProfileChoice::Kind;
    if (choice.kind == Kind::off) return {};
    if (choice.kind == Kind::file) return choice.file;
    // The first job that learns begins it.
    if (!choice.file.empty()) return has_text(choice.file) ? choice.file : std::string();
    for (const std::string& place : places_for(cpu))
        if (is_there(place)) return place;
    return {};
}

// ---- what was learned ---------------------------------------------------------------------------

// The user's own. Empty: there is no place for one.
std::string file_to_write(const ProfileChoice& choice, const std::string& cpu) {
    if (!choice.file.empty()) return choice.file;
    const std::vector<std::string> places = places_for(cpu);
    return places.size() > 1 ? places.front() : std::string();
}

// Returns why it is not all on the disk.
std::string write_all(int file, std::string_view text) {
    while (!text.empty()) {
        const ssize_t length = write(file, text.data(), text.size());
        if (length < 0 && errno == EINTR) continue;
        if (length < 0) return strerrordesc_np(errno);
        text.remove_prefix(static_cast<size_t>(length));
    }
    return fsync(file) == 0 ? "" : strerrordesc_np(errno);
}

// What a link leads to, also where that is not there yet.
std::filesystem::path behind_links(std::filesystem::path file) {
    constexpr int most_links = 16;
    std::error_code error;
    for (int i = 0; i < most_links && std::filesystem::is_symlink(file, error); ++i) {
        const std::filesystem::path target = std::filesystem::read_symlink(file, error);
        file = target.is_absolute() ? target : file.parent_path() / target;
    }
    return file;
}

// Of the folder, while a job reads and writes a profile in it; others wait, for some time.
class FolderLock {
  public:
    explicit FolderLock(const std::filesystem::path& folder) noexcept
        : folder_(open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
        constexpr int most_tries = 100;
        constexpr unsigned between_us = 10000;
        for (int i = 0; folder_ >= 0 && i < most_tries && flock(folder_, LOCK_EX | LOCK_NB) != 0;
             ++i)
            usleep(between_us);
    }
    ~FolderLock() {
        if (folder_ >= 0) close(folder_);
    }
    FolderLock(const FolderLock&) = delete;
    FolderLock& operator=(const FolderLock&) = delete;

  private:
    int folder_;
};

// Whole or not at all, whoever reads at the same time. Returns why not.
std::string replace_file(const std::filesystem::path& file, std::string_view text) {
    rlimit limit{};
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < text.size())
        return strerrordesc_np(EFBIG);  // a write would raise a signal
    const std::string other =
        file.string() + "." + std::to_string(getpid()) + "." + std::to_string(monotonic_us());
    const int fresh = open(other.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fresh < 0) return strerrordesc_np(errno);
    std::string why = write_all(fresh, text);
    struct stat old {};
    if (why.empty() && stat(file.c_str(), &old) == 0 && fchmod(fresh, old.st_mode & 0777) != 0)
        why = strerrordesc_np(errno);
    if (why.empty() && rename(other.c_str(), file.c_str()) != 0) why = strerrordesc_np(errno);
    close(fresh);
    if (!why.empty()) unlink(other.c_str());
    return why;
}

}  // namespace

#if defined(__x86_64__)

// The brand alone may be that of several generations: "AMD EPYC" on a virtual machine.
std::string host_model() {
    unsigned words[13] = {}, eax = 0, ebx = 0, ecx = 0, edx = 0;
    if (__get_cpuid_max(0x80000000, nullptr) >= 0x80000004)
        for (unsigned i = 0; i < 12; i += 4)
            __cpuid(0x80000002 + i / 4, words[i], words[i + 1], words[i + 2], words[i + 3]);
    __cpuid(1, eax, ebx, ecx, edx);
    unsigned family = eax >> 8 & 15;
    if (family == 15) family += eax >> 20 & 255;
    const unsigned model = (eax >> 4 & 15) | (eax >> 12 & 0xf0);
    return words_of(reinterpret_cast<const char*>(words), ' ', true) + " family " +
           std::to_string(family) + " model " + std::to_string(model);
}

#else

std::string host_model() {
    const std::string text = read_file("/sys/devices/system/cpu/cpu0/regs/identification/midr_el1");
    if (text.empty()) return "unknown";
    return "midr " + words_of(text, ' ', true);
}

#endif

std::string profile_name(std::string_view host_model) {
    return words_of(host_model, '-', false) + ".profile";
}

std::vector<std::string> profile_places(const char* config_home, const char* home,
                                        const std::string& name) {
    std::vector<std::string> places;
    // The XDG specification: a path that is not absolute does not count.
    if (config_home != nullptr && config_home[0] == '/')
        places.push_back(std::string(config_home) + "/vecmpi/" + name);
    else if (home != nullptr && home[0] == '/')
        places.push_back(std::string(home) + "/.config/vecmpi/" + name);
    places.push_back("/etc/vecmpi/" + name);
    return places;
}

LoadedProfile read_profile(const std::string& file, const std::string& cpu, const char* isa,
                           std::string (*mpi_library)()) {
    LoadedProfile read;
    std::string text;
    const auto refuse = [&](const std::string& why) {
        read.profile = {};
        read.problem = "profile " + file + why;
        return read;
    };
    if (const std::string why = read_text_of(file, text); !why.empty())
        return refuse(
            " cannot be read (" + why + ")" + fallback +
            "; VECMPI_PROFILE accepts auto, off, learn, or a file that vecmpi-tune wrote");
    read.file = file;
    ParsedProfile parsed = parse_profile(text);
    if (!parsed.problem.empty())
        return refuse(line_text(parsed.line) + ": " + parsed.problem + fallback);
    read.profile = std::move(parsed.profile);
    if (read.profile.cpu != cpu || read.profile.isa != isa)
        return refuse(" is for " + printable(read.profile.cpu) + " with " +
                      printable(read.profile.isa) + ", this is " + cpu + " with " + isa + fallback +
                      "; vecmpi-tune makes one for this host");
    const std::string mpi =
        read.profile.mpi.empty() || mpi_library == nullptr ? read.profile.mpi : mpi_library();
    if (mpi == read.profile.mpi) return read;
    read.problem = "profile " + file + " was measured with " + printable(read.profile.mpi) +
                   ", this is " + mpi + ": its network and its ways on a node are not used";
    read.profile.network = {};
    read.profile.transports.clear();
    read.profile.learned.clear();
    return read;
}

void load_profile(const char* isa, std::string (*mpi_library)()) noexcept {
    if (settings().profile.kind == ProfileChoice::Kind::off) return;
    try {
        const std::string cpu = host_model();
        const std::string file = file_to_read(settings().profile, cpu);
        if (!file.empty()) loaded() = read_profile(file, cpu, isa, mpi_library);
    } catch (const std::bad_alloc&) {
        loaded().profile = {};
    }
}

const LoadedProfile& process_profile() noexcept { return loaded(); }

namespace {
// Nobody else writes `file`, which `name` leads to. Returns why it is not written.
std::string write_beside_others(const ProfileChoice& choice, const std::string& name,
                                const std::filesystem::path& file, const Profile& here,
                                const std::vector<LearnedRow>& rows, std::string (*mpi_library)()) {
    std::string text;
    // The administrator's, where the user has none yet.
    const std::string base = has_text(name) ? name : file_to_read(choice, here.cpu);
    if (!base.empty()) {
        const LoadedProfile old = read_profile(base, here.cpu, here.isa.c_str(), mpi_library);
        if (!old.problem.empty()) return old.problem;
        if (old.profile.mpi.empty() && hash_of_collective_part(old.profile) != 0)
            return "what it has measured of a network or a node says of no MPI library";
        if (std::string why = read_text_of(base, text); !why.empty()) return why;
    }
    text = add_learned(text, here, rows);
    return text.size() > most_profile_bytes ? "it would be longer than 64 KiB"
                                            : replace_file(file, text);
}
}  // namespace

LearnedProfile write_learned(const ProfileChoice& choice, const std::vector<LearnedRow>& rows,
                             const char* isa, std::string (*mpi_library)()) {
    LearnedProfile learned;
    Profile here;
    here.cpu = host_model();
    here.isa = isa;
    here.mpi = mpi_library();
    learned.file = file_to_write(choice, here.cpu);
    if (learned.file.empty()) {
        learned.problem = "neither XDG_CONFIG_HOME nor HOME names a folder";
        return learned;
    }
    const std::filesystem::path file = behind_links(learned.file);
    std::error_code error;
    if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path(), error);
    if (error || !file.has_filename()) {
        learned.problem = error ? error.message() : "it is no regular file";
        return learned;
    }
    const FolderLock lock(file.parent_path());
    learned.problem = write_beside_others(choice, learned.file, file, here, rows, mpi_library);
    return learned;
}

}  // namespace vecmpi::base
