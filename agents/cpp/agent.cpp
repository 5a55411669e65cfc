// The conversation with the coordinator: orders in, events out, and one result of what all clients measured.
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zlib.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <mutex>
#include <thread>

#include "clients.h"

namespace pubmark {
namespace {

constexpr const char* kOrder = "PUBMARK_AGENT_ORDER";  // names a file with the first order

int output = 1;

void say(const char* type, Json event = Json::object()) {
  static std::mutex one_line;
  event["type"] = type;
  std::string line = event.dump() + "\n";
  std::lock_guard lock(one_line);
  for (size_t at = 0; at < line.size();) {
    ssize_t written = write(output, line.data() + at, line.size() - at);
    if (written <= 0) return;  // nobody is there any more, which ends the process by its input
    at += written;
  }
}

struct Used {
  uint64_t at_ns = 0, cpu_ns = 0, user_ns = 0, system = 0, voluntary_switches = 0, involuntary_switches = 0,
           samples = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Used, at_ns, cpu_ns, user_ns, voluntary_switches, involuntary_switches, samples)

// A thread that does nothing but look at the clock: what the process uses in the window, the pauses in which it did
// not run, and the progress of its clients.
class Watchdog {
 public:
  Watchdog(Window window, std::function<void()> progress)
      : window_(window), progress_(std::move(progress)), thread_([this] { run(); }) {}
  Json finish() {
    stop_ = true;
    thread_.join();
    if (!ended_) read();
    Json usage = course_.back();
    usage.update({{"wall_ns", course_.back().at_ns - course_.front().at_ns}, {"rss_bytes", rss_}, {"uss_bytes", uss_}});
    if (window_.open()) usage["course"] = course_;
    return usage;
  }
  Silences pauses;

 private:
  void run() {
    prctl(PR_SET_TIMERSLACK, 1);
    Ns woke = now(), next_progress = window_.start + kSecond, next_sample = 0, next_reading = 0;
    for (Ns step = 4 * kMillisecond; !stop_;) {
      Ns edge = course_.empty() ? window_.from : ended_ ? kNever : std::min({window_.to, next_sample, next_reading});
      sleep_until(std::min({woke + kNap, next_progress, edge}));
      Ns before = std::exchange(woke, now()), from = std::max(before, window_.from), to = std::min(woke, window_.to);
      if (to > from && to - from >= 3 * kNap) pauses.add({1, to - from - kNap, from - window_.from});
      if (woke >= next_progress) progress_(), next_progress += kSecond;
      if (woke < edge || ended_) continue;
      if (course_.empty()) next_sample = window_.from + std::min(kSecond, window_.to - window_.from) / 16;
      if (course_.empty() || woke >= std::min(next_reading, window_.to)) {
        if (course_.size() == 1000) {  // half of them go, and the next ones are twice as far apart
          for (size_t at = 0; at < 500; at++) course_[at] = course_[2 * at];
          course_.resize(500), step *= 2;
        }
        read();
        next_reading = window_.open() ? woke + step : kNever;
        ended_ = woke >= window_.to;
      }
      if (woke < next_sample) continue;
      sample();
      next_sample = woke + (rss_.size() < 4 ? kSecond / 4 : kSecond);
    }
  }
  void read() {
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    auto us = [](timeval time) { return static_cast<uint64_t>(time.tv_sec * 1'000'000 + time.tv_usec); };
    Used used{now(), now(CLOCK_PROCESS_CPUTIME_ID), us(usage.ru_utime), us(usage.ru_stime)};
    used.voluntary_switches = usage.ru_nvcsw, used.involuntary_switches = usage.ru_nivcsw, used.samples = rss_.size();
    if (course_.empty()) first_ = used;
    for (auto part :
         {&Used::cpu_ns, &Used::user_ns, &Used::system, &Used::voluntary_switches, &Used::involuntary_switches}) {
      used.*part -= first_.*part;
    }
    // The kernel's split into user and system is an estimate; the sum is not.
    double share = static_cast<double>(used.user_ns) / static_cast<double>(std::max(1ul, used.user_ns + used.system));
    used.user_ns = static_cast<Ns>(static_cast<double>(used.cpu_ns) * share);
    course_.push_back(used);
  }
  void sample() {
    std::ifstream smaps("/proc/self/smaps_rollup");
    uint64_t rss = 0, uss = 0, kib = 0;
    for (std::string line; std::getline(smaps, line);) {
      if (std::sscanf(line.c_str(), "Rss: %lu", &kib) == 1) rss = kib * 1024;
      if (std::sscanf(line.c_str(), "Private_%*[CD]%*[a-z]: %lu", &kib) == 1) uss += kib * 1024;
    }
    rss_.push_back(rss), uss_.push_back(uss);
  }

  Window window_;
  std::function<void()> progress_;
  std::atomic<bool> stop_{false};
  bool ended_ = false;
  Used first_;
  std::vector<Used> course_;  // readings since the first, which is the window's beginning
  std::vector<uint64_t> rss_, uss_;
  std::thread thread_;
};

// The folder of a run whose coordinator has died.
void remove_scratch() {
  const char* scratch = std::getenv("PUBMARK_SCRATCH");
  if (!scratch) return;
  std::filesystem::path path(scratch);
  std::error_code ignored;
  if (path.is_absolute() && path.filename().string().rfind("pubmark-", 0) == 0 &&
      std::filesystem::exists(path / "lock", ignored)) {
    std::filesystem::remove_all(path, ignored);
  }
}

// Raw DEFLATE, base64.
std::string packed(const Seen& seen) {
  std::vector<uint8_t> bytes(compressBound((seen.end() + 7) / 8) + 64);
  z_stream stream{};
  deflateInit2(&stream, 1, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = const_cast<uint8_t*>(seen.bytes());
  stream.avail_in = (seen.end() + 7) / 8;
  stream.next_out = bytes.data();
  stream.avail_out = bytes.size();
  deflate(&stream, Z_FINISH);
  bytes.resize(stream.total_out);
  deflateEnd(&stream);
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    uint32_t three = bytes[at] << 16;
    if (at + 1 < bytes.size()) three |= bytes[at + 1] << 8;
    if (at + 2 < bytes.size()) three |= bytes[at + 2];
    for (int shift = 18; shift >= 0; shift -= 6) {
      text += "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[three >> shift & 63];
    }
  }
  for (size_t pad = (3 - bytes.size() % 3) % 3; pad > 0; pad--) text[text.size() - pad] = '=';
  return text;
}

class Conversation {
 public:
  explicit Conversation(const About& about) : about_(about) {}

  void hear(const std::string& line) {
    Json order = Json::parse(line, nullptr, false);
    std::string type = order.is_object() ? order.value("type", "") : "";
    if (type == "hello") return hello(order);
    if (type == "prepare" && !work_) return prepare(order);
    if (type == "start" && work_ && control_.start_ns == 0) return start(order.at("at_ns"));
    if (type == "drain" && work_ && !control_.drain) return drain(order);
    if (type == "crash" && work_ && control_.end == Control::kGoesOn) return control_.end.store(Control::kCrashed);
    if (type == "stop" && control_.end != Control::kStopped) return stop();
    if (type == "exit") leave(0);
    say("error", {{"message", "this is no order that can be followed now: " + line.substr(0, 200)}, {"fatal", false}});
  }
  void fail(const std::string& message, bool too_late = false) {
    say("error", {{"message", message}, {"fatal", true}, {"too_late", too_late}});
    leave(1);
  }
  [[noreturn]] void abandon() {
    remove_scratch();
    leave(1);
  }
  [[noreturn]] void leave(int status) {
    if (leaving_.exchange(true)) {  // another thread does
      sleep(1);
      _exit(1);
    }
    if (driver_) driver_.load()->leave(control_.stopped());
    _exit(status);
  }

 private:
  void hello(const Json& order) {
    if (order.value("protocol", 0) != 2)
      fail("this agent speaks version 2 of the protocol alone: update pubmark or it");
    Json names, options;
    for (const auto& driver : about_.drivers) names.push_back(driver.name), options[driver.name] = driver.options;
    Json features = Json::parse(R"({"arrivals": ["uniform", "poisson", "burst"], "verification": ["header", "full"],
      "pacing": ["sleep", "hybrid", "spin"], "profiles": ["constant", "max"], "flows": 1, "pauses": true,
      "clock_offset": true})");
    features.update({{"patterns", about_.patterns}, {"transports", about_.transports}, {"crash", about_.crash}});
    Json event = Json::parse(R"({"protocol": 2, "version": "1.0.0"})");
    event.update({{"name", about_.name}, {"pid", getpid()}, {"drivers", names}, {"options", options}});
    event.update({{"clock_ns", now()}, {"versions", about_.versions}, {"features", features}});
    say("hello", event);
  }

  void prepare(const Json& order) {
    const std::string name = order.at("driver");
    auto kind = std::find_if(about_.drivers.begin(), about_.drivers.end(),
                             [&](const DriverKind& kind) { return kind.name == name; });
    if (kind == about_.drivers.end()) fail("there is no driver " + name + " here");
    if (order.at("flows").size() != 1) fail("this agent plays one flow at a time");
    options_ = order.at("options");
    for (const auto& [option, value] : options_.items()) {
      if (std::count(kind->options.begin(), kind->options.end(), option) == 0) {
        fail("the driver " + name + " has no option " + option);
      }
    }
    work_.emplace(order["flows"][0].at("workload"));
    work_->ahead_ns = order.value("clock_offset_ns", int64_t{0});
    if (std::count(about_.patterns.begin(), about_.patterns.end(), work_->pattern) == 0) {
      fail("the driver " + name + " cannot play the pattern " + work_->pattern);
    }
    auto driver = kind->make(options_);
    driver_ = driver.release();  // to the end of the process: another thread may call leave()
    open(order);
    Json endpoints = Json::array();
    for (const auto& client : clients_) {
      waits_[0] += 1;
      waits_[1] += sends(*client);
      waits_[2] += client->role == Role::kSubscriber || client->role == Role::kReplier;
      const char* role = client->role == Role::kPublisher ? "publisher" : "replier";
      std::string endpoint = client->socket->endpoint();
      if (endpoint.empty()) continue;
      Json bound{{"role", role}, {"id", client->id}, {"endpoint", endpoint}};
      if (std::string answers = client->socket->answers(); !answers.empty()) bound["answers"] = answers;
      endpoints.push_back(bound);
    }
    say("bound", {{"endpoints", endpoints}});
    if (clients_.empty()) say("ready");
    for (auto& client : clients_) {
      const Json& cpus = order.at(sends(*client) ? "publisher_cpus" : "subscriber_cpus");
      threads_.emplace_back([this, &client, cpus] { play(*client, cpus); });
    }
  }
  // What binds is opened before what connects to it: within a process that may be needed.
  void open(const Json& order) {
    const std::map<std::string, Role> roles{{"publisher", Role::kPublisher},
                                            {"subscriber", Role::kSubscriber},
                                            {"requester", Role::kRequester},
                                            {"replier", Role::kReplier}};
    for (bool binds : {true, false}) {
      for (const auto& entry : order.at("clients")) {
        std::string bind = entry.contains("bind") && entry["bind"].is_string() ? entry["bind"] : "";
        if (bind.empty() == binds) continue;
        Role role = roles.at(entry.at("role"));
        auto client = std::make_unique<Client>(*work_, control_, role, entry);
        Spec spec{role, client->id, work_->pattern, work_->transport, work_->payload_bytes, work_->spin, bind,
                  {},   {},         options_};
        if (entry.contains("answers") && entry["answers"].is_string()) spec.answers = entry["answers"];
        if (entry.contains("connect") && entry["connect"].is_array()) entry["connect"].get_to(spec.connect);
        client->socket = driver_.load()->open(spec);
        clients_.push_back(std::move(client));
      }
    }
    auto senders = std::count_if(clients_.begin(), clients_.end(), [](auto& client) { return sends(*client); });
    for (auto& client : clients_) {
      client->spin_cores = order.value("spin_cores", 0.0) / static_cast<double>(std::max(1l, senders));
    }
  }
  static bool sends(const Client& client) { return client.role == Role::kPublisher || client.role == Role::kRequester; }

  void play(Client& client, const Json& cpus) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int cpu : cpus) CPU_SET(cpu, &set);
    if (!cpus.empty() && sched_setaffinity(0, sizeof set, &set) != 0) fail("pinning to processors was refused");
    try {
      client.run([this](Word word) { count(word); });
    } catch (const std::exception& error) { fail("client " + std::to_string(client.id) + ": " + error.what()); }
  }
  // A client has come so far; when all have, it is said.
  void count(Word word) {
    std::lock_guard lock(counting_);
    auto at = static_cast<size_t>(word);
    if (--waits_[at] > 0) return;
    if (word == Word::kReady) say("ready");
    if (word == Word::kSent) say("sent", {{"publishers", totals()}});
    if (word == Word::kDrained) say("drained");
  }
  Json totals() const {
    Json list = Json::array();
    for (const auto& client : clients_) {
      if (client->sending) list.push_back(client->sending->total);
    }
    return list;
  }

  void start(Ns at) {
    if (at <= now()) fail("the start has passed: the machine is too busy, or it was told too late", true);
    watchdog_.emplace(Window(*work_, at), [this] {
      uint64_t sent = 0, received = 0, lag = 0;
      for (auto& client : clients_) {
        sent += client->counter.sent;
        received += client->counter.received;
        lag = std::max(lag, client->counter.own_lag_max.exchange(0));
      }
      say("progress", {{"sent", sent}, {"received", received}, {"own_lag_max_ns", lag}});
    });
    control_.start_ns = at;
  }
  void drain(const Json& order) {
    drain_.deadline = order.at("deadline_ns");
    for (const Total& total : order.at("publishers").get<std::vector<Total>>()) {
      if (total.publisher >= 1 << 24) continue;
      drain_.totals.resize(std::max<size_t>(drain_.totals.size(), total.publisher + 1));
      drain_.totals[total.publisher] = total;
    }
    if (waits_[2] == 0) say("drained");
    control_.drain = &drain_;
  }
  void stop() {
    control_.end = Control::kStopped;
    for (auto& thread : threads_) thread.join();
    Json result = Json::parse(R"({"usage": {"wall_ns": 0, "cpu_ns": 0, "user_ns": 0, "voluntary_switches": 0,
      "involuntary_switches": 0, "rss_bytes": [], "uss_bytes": []}, "pauses": null, "versions": {}, "applied": {},
      "runtime": {"pauses": null}, "made": {"language": "C++17", "call": "blocking", "memory": "RAII"}})");
    if (watchdog_) result["usage"] = watchdog_->finish(), result["pauses"] = watchdog_->pauses;
    if (driver_) result["versions"] = driver_.load()->versions(), result["made"].update(driver_.load()->made());
    result["made"].update({{"runtime", "g++ " __VERSION__}, {"build", about_.build}, {"flags", about_.flags}});
    if (!clients_.empty()) result["applied"] = clients_.front()->socket->applied();
    result["loops"] = clients_.size();
    result["flows"] = Json::array({work_ ? flow() : Json()});
    result["remarks"] = remarks_;
    say("result", result);
  }
  Json flow() {
    Window window(*work_, control_.start_ns);
    Books books(window);
    Json pacing, seen = Json::array();
    double budget = 0, spent = 0;
    for (const auto& client : clients_) {
      if (client->books) books.add(*client->books);
      if (client->sending) {
        if (client->sending->total.sent >= client->sending->most) {
          remarks_.push_back("publisher " + std::to_string(client->id) + " stopped: no more can be accounted for");
        }
        budget += client->pacer->cores;
        spent += static_cast<double>(client->pacer->spent_ns) / static_cast<double>(window.to - window.from);
        Ns margin = work_->pacing == "spin" ? 0 : client->pacer->margin();
        pacing = {{"budget_cores", budget}, {"spent_cores", spent}, {"margin_ns", margin}};
      }
      if (!client->receiving) continue;
      if (client->receiving->unheard) {
        remarks_.push_back("client " + std::to_string(client->id) + " never heard all whom it should hear");
      }
      uint32_t publisher = client->receiving->first;
      for (const auto& stream : client->receiving->streams) {
        if (work_->competing) seen.push_back({{"publisher", publisher++}, {"bits", packed(stream.seen)}});
      }
    }
    Json flow = books.json(window);
    flow.update({{"publishers", totals()}, {"pacing", pacing}, {"seen", seen}});
    flow.update({{"acked", 0}, {"unacked", Json::array()}, {"missing", Json::array()}});
    return flow;
  }

  const About& about_;
  std::optional<Workload> work_;
  Json options_;
  Control control_;
  Drain drain_;
  std::atomic<Driver*> driver_{nullptr};
  std::atomic<bool> leaving_{false};
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<std::thread> threads_;
  std::mutex counting_;
  std::array<long, 3> waits_{};  // clients that have not said each word yet
  std::optional<Watchdog> watchdog_;
  std::vector<std::string> remarks_;
};

// Begins anew with another environment; the order that was being followed is the first that is read then.
[[noreturn]] void begin_anew(const Restart& restart, const std::string& order) {
  int file = memfd_create("order", 0);
  if (write(file, order.data(), order.size()) == static_cast<ssize_t>(order.size())) {
    setenv(kOrder, ("/proc/self/fd/" + std::to_string(file)).c_str(), 1);
    setenv(restart.variable.c_str(), restart.value.c_str(), 1);
    dup2(output, 1);
    execl("/proc/self/exe", "agent", nullptr);
  }
  std::cerr << "cannot begin anew with " << restart.variable << "=" << restart.value << "\n";
  _exit(1);
}

}  // namespace

void play(const About& about) {
  output = fcntl(1, F_DUPFD_CLOEXEC, 3);
  dup2(2, 1);
  signal(SIGPIPE, SIG_IGN);
  static Conversation conversation(about);
  // Whatever the conversation waits for: when nobody is there any more, the process ends.
  std::thread([] {
    pollfd input{0, 0, 0};
    while (poll(&input, 1, -1) <= 0) continue;
    sleep(1);
    conversation.abandon();
  }).detach();
  std::string order;
  if (const char* kept = std::getenv(kOrder)) std::getline(std::ifstream(kept), order);
  while (!order.empty() || std::getline(std::cin, order)) {
    try {
      conversation.hear(order);
    } catch (const Restart& restart) { begin_anew(restart, order); } catch (const std::exception& error) {
      conversation.fail(error.what());
    }
    order.clear();
  }
  conversation.abandon();
}

}  // namespace pubmark
