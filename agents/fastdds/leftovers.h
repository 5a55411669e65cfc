// What Fast DDS keeps in /dev/shm, and what processes that were killed have left there.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace pubmark {

// Memory that a process shares through the library: segments, and queues of ports.
inline std::set<std::string> shared_files(const std::string& process) {
  std::set<std::string> files;
  std::ifstream maps("/proc/" + process + "/maps");
  for (std::string line; std::getline(maps, line);) {
    auto at = line.find("/dev/shm/fast");
    if (at != std::string::npos) files.insert(line.substr(at, line.find(' ', at) - at));
  }
  return files;
}

// The memory to which a file of this name belongs, if the library makes such names: the memory itself, its locks
// (`_el`, `_sl`), or the mutex of a port (`sem.…_mutex`).
inline std::optional<std::string> memory_of(std::string name) {
  auto without = [&name](const std::string& end) {
    bool has = name.size() > end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0;
    if (has) name.resize(name.size() - end.size());
    return has;
  };
  if (name.compare(0, 4, "sem.") == 0 && without("_mutex")) name.erase(0, 4);
  if (!without("_el")) without("_sl");
  bool made = name.compare(0, 9, "fastrtps_") == 0 || name.compare(0, 17, "fast_datasharing_") == 0;
  return made ? std::optional("/dev/shm/" + name) : std::nullopt;
}

// Whether another process holds a lock of the library's.
inline bool is_locked(const std::string& file) {
  int opened = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  bool locked = opened >= 0 && flock(opened, LOCK_EX | LOCK_NB) != 0;
  if (opened >= 0) close(opened);
  return locked;
}

// Removes this user's files that no process has mapped or locked. Those of the last second may be on their way to it.
inline void remove_leftovers() {
  std::error_code ignored;
  std::vector<std::pair<std::string, std::string>> found;  // a file, and the memory to which it belongs
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", ignored)) {
    auto memory = memory_of(entry.path().filename());
    struct stat file {};
    bool ours = memory && lstat(entry.path().c_str(), &file) == 0 && S_ISREG(file.st_mode) && file.st_uid == geteuid();
    if (ours && time(nullptr) - file.st_mtime > 1) found.emplace_back(entry.path(), *memory);
  }
  if (found.empty()) return;
  std::set<std::string> used;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    std::string name = entry.path().filename();
    if (std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c); }))
      used.merge(shared_files(name));
  }
  for (const auto& [file, memory] : found) {
    if (used.count(memory) == 0 && !is_locked(memory + "_el") && !is_locked(memory + "_sl")) {
      std::filesystem::remove(file, ignored);
    }
  }
}

}  // namespace pubmark
