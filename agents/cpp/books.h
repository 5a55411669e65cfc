// What is known of time, and what is kept of messages: clock, window, schedule, header, histogram, ledger.
#pragma once

#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>

#include "driver.h"

namespace pubmark {

constexpr Ns kSecond = 1'000'000'000, kMillisecond = 1'000'000, kNap = 50 * kMillisecond, kNever = UINT64_MAX;
constexpr uint32_t kProbe = 0xffffffff, kEnd = 0xfffffffe;

inline Ns now(clockid_t clock = CLOCK_MONOTONIC) {
  timespec time;
  clock_gettime(clock, &time);
  return static_cast<Ns>(time.tv_sec) * kSecond + static_cast<Ns>(time.tv_nsec);
}

// Sleeps until an instant, or for 50 ms where that is sooner, so that a stop is noticed.
inline void sleep_until(Ns at) {
  at = std::min(at, now() + kNap);
  timespec until{static_cast<time_t>(at / kSecond), static_cast<long>(at % kSecond)};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
}

// Numbers that begin at zero, for which memory is taken only where they are written.
struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
template <class T>
using Zeroed = std::unique_ptr<T[], Free>;
template <class T>
Zeroed<T> zeroed(size_t count) {
  if (void* memory = std::calloc(count, sizeof(T))) return Zeroed<T>(static_cast<T*>(memory));
  throw Failure("no memory for the books of a run: play fewer clients in a process");
}

struct SplitMix {
  uint64_t state;
  uint64_t next() {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
};

struct Workload {
  explicit Workload(const Json& json)
      : pattern(json.at("pattern")),
        transport(json.at("transport").is_string() ? json.at("transport").get<std::string>() : ""),
        publishers(json.at("publishers")), subscribers(json.at("subscribers")), max(json.at("rate").is_string()),
        per_ks(max ? 0 : std::llround(json.at("rate").get<double>() * 1000)), payload_bytes(json.at("payload_bytes")),
        warmup_ns(json.at("warmup_ns")), drain_ns(json.at("drain_ns")), quantum_ns(json.at("pacing_quantum_ns")),
        seed(json.at("seed")), pacing(json.at("pacing")), spin(json.at("receive") == "spin"),
        full(json.at("verify") == "full"), poisson(json.at("arrival") == "poisson") {
    const std::string arrival = json.at("arrival");
    if (arrival.rfind("burst:", 0) == 0) burst = std::stoull(arrival.substr(6));
    if (json.at("extent").contains("count")) count = json["extent"]["count"].get<uint64_t>();
    if (count && !max) window_ns = static_cast<Ns>(static_cast<unsigned __int128>(*count) * 1000 * kSecond / per_ks);
    if (!count) window_ns = json["extent"].at("time_ns").get<Ns>();
  }
  // Messages between two looks at the clock: more than one only where no latency is measured.
  uint32_t stride() const { return timed ? 1 : std::clamp<uint64_t>(16384 / payload_bytes, 1, 64); }
  // Messages of one publisher that a ledger must have room for; at `max` 50 million a second.
  uint64_t ledger() const {
    double rate = max ? 5e7 : static_cast<double>(per_ks) / 1000;
    double due = rate * static_cast<double>(warmup_ns + window_ns.value_or(0)) / 1e9;
    due += 12 * std::sqrt(due) + 64 + static_cast<double>(burst + count.value_or(0));
    return std::min<double>(due, kEnd);
  }

  std::string pattern, transport;
  uint32_t publishers, subscribers;
  bool max;
  uint64_t per_ks;  // messages of a publisher in 1,000 s
  uint64_t payload_bytes;
  Ns warmup_ns, drain_ns, quantum_ns;
  uint64_t seed;
  std::string pacing;
  bool spin, full, poisson;
  bool competing = pattern == "pipeline", echoed = pattern == "fan-out-echo";
  bool round_trip = pattern == "request-reply" || echoed;
  bool timed = !max || round_trip;  // whether latency is measured
  Ns ahead_ns = 0;                  // of the instants in messages, as seen by this machine's clock; modulo 2^64
  uint64_t burst = 1;
  std::optional<uint64_t> count;
  std::optional<Ns> window_ns;  // none: a count at `max`
};

// The measured part of a run; a message belongs to it by its intended time.
struct Window {
  Window(const Workload& work, Ns start_ns) : start(start_ns), from(start_ns + work.warmup_ns) {
    Ns length = work.window_ns.value_or(3600 * kSecond);
    to = work.window_ns ? from + length : kNever;
    slice_ns = std::max(std::clamp(length / 20, 10 * kMillisecond, kSecond), (length + 3599) / 3600);
    slices = std::max<Ns>(1, (length + slice_ns - 1) / slice_ns);
  }
  bool open() const { return to == kNever; }
  bool holds(Ns at) const { return from <= at && at < to; }
  Ns start, from, to, slice_ns;
  size_t slices;
};

// Finds the slices of instants that follow one another: mostly the one before.
struct Slicer {
  Window window;
  Ns from = 1, to = 0;
  size_t index = 0;
  std::optional<size_t> of(Ns at) {
    if (from <= at && at < to) return index;
    if (!window.holds(at)) return {};
    index = std::min<size_t>((at - window.from) / window.slice_ns, window.slices - 1);
    from = window.from + index * window.slice_ns;
    to = std::min(from + window.slice_ns, window.to);
    return index;
  }
};

// When the messages of one publisher are due, from the start: whole nanoseconds, without a sum that drifts.
class Schedule {
 public:
  Schedule(const Workload& work, uint32_t publisher)
      : step_(kPer1000s / work.per_ks), rest_(kPer1000s % work.per_ks), per_ks_(work.per_ks), burst_(work.burst) {
    if ((poisson_ = work.poisson)) {
      random_.state = SplitMix{work.seed ^ (static_cast<uint64_t>(publisher) << 32)}.next();
      draw();
    } else {
      auto period = static_cast<Ns>(static_cast<unsigned __int128>(burst_) * kPer1000s / per_ks_);
      uniform_ = static_cast<Ns>(static_cast<unsigned __int128>(period) * publisher / work.publishers);
      due_ = uniform_;
    }
  }
  Ns due() const { return due_; }
  void advance() {
    if (poisson_) return draw();
    uniform_ += step_;
    carry_ += rest_;
    if (carry_ >= per_ks_) carry_ -= per_ks_, uniform_ += 1;
    if (++index_ % burst_ == 0) due_ = uniform_;
  }

 private:
  static constexpr uint64_t kPer1000s = 1'000'000'000'000;
  void draw() {
    double unit = static_cast<double>(random_.next() >> 11) / static_cast<double>(1ull << 53);
    at_ += -std::log(1 - unit) * 1e12 / static_cast<double>(per_ks_);
    due_ = static_cast<Ns>(at_);
  }
  uint64_t step_, rest_, per_ks_, burst_, carry_ = 0, index_ = 0;
  Ns uniform_ = 0, due_ = 0;
  bool poisson_ = false;
  double at_ = 0;
  SplitMix random_{0};
};

struct Header {
  Ns intended;
  uint32_t publisher, sequence;
  Ns sent, free;
};
static_assert(sizeof(Header) == 32 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the header is copied as it lies");

inline size_t header_bytes(size_t payload) { return payload >= 32 ? 32 : payload >= 24 ? 24 : 16; }

inline Header shifted(const Header& header, Ns by) {
  return {header.intended + by, header.publisher, header.sequence, header.sent + by, header.free + by};
}

// A message with the body that all messages have.
inline std::vector<uint8_t> blank(size_t payload) {
  std::vector<uint8_t> bytes(payload + 8);
  SplitMix random{0x7075626d61726b31};
  for (size_t at = 0; at < payload; at += 8) {
    uint64_t value = random.next();
    std::memcpy(&bytes[at], &value, 8);
  }
  bytes.resize(payload);
  return bytes;
}

// Counts of times in ns, as fine as so many binary digits.
class Histogram {
 public:
  explicit Histogram(unsigned digits)
      : digits_(digits), size_((50ul - digits) << (digits - 1)), cells_(zeroed<uint64_t>(size_)) {}
  void record(Ns time) { cells_[place(std::min<Ns>(time, 86'400 * kSecond))] += 1; }
  void operator+=(const Histogram& other) {
    for (size_t at = 0; at < size_; at++) {
      if (other.cells_[at]) cells_[at] += other.cells_[at];
    }
  }
  // [[value, count], …], or null where it is empty.
  Json json() const {
    Json pairs;
    for (size_t at = 0; at < size_; at++) {
      if (cells_[at]) pairs.push_back({lowest(at), cells_[at]});
    }
    return pairs;
  }

 private:
  size_t place(Ns time) const {
    if (time >> digits_ == 0) return time;
    unsigned shift = 64 - __builtin_clzll(time) - digits_;
    return (static_cast<size_t>(shift) << (digits_ - 1)) + (time >> shift);
  }
  Ns lowest(size_t at) const {
    if (at >> digits_ == 0) return at;
    size_t shift = (at >> (digits_ - 1)) - 1;
    return (at - (shift << (digits_ - 1))) << shift;
  }
  unsigned digits_;
  size_t size_;
  Zeroed<uint64_t> cells_;
};
constexpr unsigned kFine = 11, kCoarse = 8;  // binary digits: three decimal ones, and two

// Which sequences arrived: a bit each.
class Seen {
 public:
  explicit Seen(uint64_t capacity) : capacity_(capacity | 63), words_(zeroed<uint64_t>(capacity / 64 + 1)) {}
  bool has_room(uint64_t sequence) const { return sequence <= capacity_; }
  bool mark(uint64_t sequence) {
    uint64_t& word = words_[sequence / 64];
    uint64_t before = std::exchange(word, word | 1ull << sequence % 64);
    end_ = std::max(end_, sequence + 1);
    return word != before;
  }
  uint64_t count(uint64_t first, uint64_t end) const {
    uint64_t sum = 0;
    for (uint64_t at = first; at < std::min(end, end_);) {
      uint64_t here = std::min(64 - at % 64, end - at);
      uint64_t mask = here == 64 ? ~0ull : ((1ull << here) - 1) << at % 64;
      sum += __builtin_popcountll(words_[at / 64] & mask);
      at += here;
    }
    return sum;
  }
  uint64_t end() const { return end_; }  // the sequence after the highest
  const uint8_t* bytes() const { return reinterpret_cast<const uint8_t*>(words_.get()); }

 private:
  uint64_t capacity_, end_ = 0;
  Zeroed<uint64_t> words_;
};

struct Silences {
  uint64_t count = 0, longest_ns = 0, longest_at_ns = 0;
  void add(const Silences& other) {
    if (other.longest_ns > longest_ns) longest_ns = other.longest_ns, longest_at_ns = other.longest_at_ns;
    count += other.count;
  }
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Silences, count, longest_ns, longest_at_ns)

enum Count { kExpected, kDelivered, kDuplicated, kReordered, kCorrupted, kUnidentified, kNegative, kUnanswered };
constexpr std::array kCounts{"expected",  "delivered",    "duplicated", "reordered",
                             "corrupted", "unidentified", "negative",   "unanswered"};
enum Time { kLatency, kIntendedLatency, kServiceLatency, kReceiveLag, kSendLag, kOwnLag };
constexpr std::array kTimes{"latency", "intended_latency", "service_latency", "receive_lag", "send_lag", "own_lag"};

// What a client measured, or all of them.
struct Books {
  std::array<uint64_t, kCounts.size()> counts{};
  std::vector<Histogram> times, series_latency;
  std::vector<uint64_t> series_sent, series_delivered;
  std::optional<Ns> first_sent, last_arrival;
  uint64_t arrived = 0, jitter_pairs = 0;
  double jitter_sum = 0;
  Silences stalls;

  explicit Books(const Window& window) : series_sent(window.slices), series_delivered(window.slices) {
    for (size_t at = 0; at < kTimes.size(); at++) times.emplace_back(kFine);
    for (size_t at = 0; at < (window.open() ? 1 : window.slices); at++) series_latency.emplace_back(kCoarse);
  }
  void add(const Books& other) {
    auto sum = [](auto& mine, const auto& theirs) {
      for (size_t at = 0; at < mine.size(); at++) mine[at] += theirs[at];
    };
    sum(counts, other.counts), sum(times, other.times), sum(series_latency, other.series_latency);
    sum(series_sent, other.series_sent), sum(series_delivered, other.series_delivered);
    if (other.first_sent) first_sent = std::min(first_sent.value_or(kNever), *other.first_sent);
    last_arrival = std::max(last_arrival, other.last_arrival);
    arrived += other.arrived, jitter_pairs += other.jitter_pairs, jitter_sum += other.jitter_sum;
    stalls.add(other.stalls);
  }
  // As a flow of the result has it, without what belongs to single clients.
  Json json(const Window& window) {
    Json flow{{"arrived", arrived}, {"jitter_sum_ns", jitter_sum}, {"jitter_pairs", jitter_pairs}, {"stalls", stalls}};
    for (size_t at = 0; at < kCounts.size(); at++) flow["ledger"][kCounts[at]] = counts[at];
    for (size_t at = 0; at < kTimes.size(); at++) flow["histograms"][kTimes[at]] = times[at].json();
    flow["first_sent_ns"] = first_sent ? Json(*first_sent) : Json();
    flow["last_arrival_ns"] = last_arrival ? Json(*last_arrival) : Json();
    for (auto* counts : {&series_sent, &series_delivered}) {  // of a length that nobody knew: without its empty end
      while (window.open() && !counts->empty() && counts->back() == 0) counts->pop_back();
    }
    flow["series"] = {{"slice_ns", window.slice_ns}, {"sent", series_sent}, {"delivered", series_delivered}};
    for (const auto& slice : series_latency) flow["series"]["latency"].push_back(slice.json());
    return flow;
  }
};

}  // namespace pubmark
