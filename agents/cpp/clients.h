// The clients: one thread each, with a socket, a schedule and books of its own. Nothing is shared on the way of a
// message but flags that are read and counters that one thread writes.
#pragma once

#include <atomic>

#include "books.h"

namespace pubmark {

struct Total {
  uint32_t publisher = 0;
  uint64_t sent = 0, window_first = 0, window_end = 0, offered = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Total, publisher, sent, window_first, window_end, offered)

struct Drain {
  std::vector<std::optional<Total>> totals;  // by publisher
  Ns deadline;
  const Total* of(uint32_t publisher) const {
    return publisher < totals.size() && totals[publisher] ? &*totals[publisher] : nullptr;
  }
};

// What the conversation tells its clients.
struct Control {
  enum End { kGoesOn, kCrashed, kStopped };
  std::atomic<Ns> start_ns{0};
  std::atomic<const Drain*> drain{nullptr};
  std::atomic<int> end{kGoesOn};
  bool stopped() const { return end.load(std::memory_order_relaxed) == kStopped; }
  bool silenced() const { return end.load(std::memory_order_relaxed) != kGoesOn; }
};

// What the display is told.
struct alignas(64) Counter {
  std::atomic<uint64_t> sent{0}, received{0}, own_lag_max{0};
};

enum class Word { kReady, kSent, kDrained };

// Waits for due times: asleep until a margin before, then awake. The margin follows the 99th percentile of what
// waking up takes: up by a step for each wake-up that was later, down by a hundredth of it for each that was not.
class Pacer {
 public:
  Pacer(const Workload& work, double cores, Ns from) : cores(cores), spins_(work.pacing == "spin"), from_(from) {
    double per_s = static_cast<double>(work.per_ks) / 1000;
    most_ = work.pacing == "hybrid" && per_s > 0 ? static_cast<Ns>(std::min(cores / per_s * 1e9, 200e3)) : 0;
  }
  Ns wait(Ns until) {
    Ns time = now(), alarm = until - std::min(until, margin());
    if (alarm > time) {
      sleep_until(alarm);
      time = now();
      if (time < alarm) return time;
      wake_ = time - alarm > wake_ / 100 ? std::min(wake_ + 198'000, 20'000'000ul) : std::max(wake_, 202'000ul) - 2'000;
    }
    Ns awake = time;
    for (until = std::min(until, time + kNap); time < until; time = now()) sched_yield();
    if (awake >= from_) spent_ns += std::min(time, until) - std::min(awake, until);
    return time;
  }
  Ns margin() const { return spins_ ? kNever : std::min(wake_ / 100, most_); }

  double cores;
  Ns spent_ns = 0;

 private:
  bool spins_;
  Ns wake_ = 6'000'000, most_, from_;  // `wake_` is in hundredths
};

// What a publisher, or the asking side of a requester, has sent.
struct Sending {
  Sending(const Workload& work, uint32_t id, Window window, Books& books)
      : work(work), books(books), slicer{window}, most(work.ledger()), message(blank(work.payload_bytes)) {
    total.publisher = id;
    if (!work.max) schedule.emplace(work, id);
    give_up = window.open() ? kNever : window.to + work.drain_ns;
  }

  enum Next { kSend, kWait, kDone };
  // What to do at `time`; `wait_until` is when to ask again.
  Next next(Ns time) {
    const Window& window = slicer.window;
    if (std::exchange(waiting, false)) woke = time;
    intended = schedule ? window.start + schedule->due() : std::max(time, window.start);
    if (work.count ? total.offered >= *work.count : intended >= window.to) return kDone;
    if (intended > time) {
      waiting = true;
      wait_until = std::max(intended, schedule ? woke + work.quantum_ns : 0);
      return kWait;
    }
    return total.sent >= most || (schedule && time >= give_up) ? kDone : kSend;
  }
  void stamp(Ns time) {
    Header own{intended, total.publisher, static_cast<uint32_t>(total.sent), time, std::max(intended, free)};
    Header header = shifted(own, work.ahead_ns);
    std::memcpy(message.data(), &header, header_bytes(message.size()));
  }
  // How many may be offered one after the other, all of one instant: by a schedule each has its own.
  uint64_t at_once() const {
    if (schedule) return 1;
    uint64_t left = most - total.sent;
    if (work.count && intended >= slicer.window.from) left = std::min(left, *work.count - total.offered);
    return std::min<uint64_t>(work.stride(), left);
  }
  // The message after so many others of the same instant.
  void stamp_later(uint64_t others) {
    auto sequence = static_cast<uint32_t>(total.sent + others);
    std::memcpy(message.data() + offsetof(Header, sequence), &sequence, sizeof sequence);
  }
  // So many were accepted; the call began and ended then, and all of it was the system's.
  void accepted(Ns began, Ns ended, uint64_t count = 1) {
    free = std::max(free, intended);
    Ns own = began - std::min(began, free);
    if (intended >= slicer.window.from) {
      if (total.offered == 0) total.window_first = total.sent, books.first_sent = began;
      total.offered += count;
      total.window_end = total.sent + count;
      if (schedule) books.times[kSendLag].record(began - std::min(began, intended)), books.times[kOwnLag].record(own);
    }
    if (schedule) own_max = std::max(own_max, own), schedule->advance();
    if (auto slice = slicer.of(began)) books.series_sent[*slice] += count;
    free += ended - began;
    total.sent += count;
  }
  void system_was_late(Ns until) { free = std::max(free, until); }
  // Counts what was due by then and is not sent.
  void finish(Ns by) {
    const Window& window = slicer.window;
    if (total.window_end == 0) total.window_first = total.window_end = total.sent;
    for (; schedule; schedule->advance()) {
      Ns due = window.start + schedule->due();
      if (due > by || (work.count ? total.offered >= *work.count : due >= window.to)) return;
      total.offered += due >= window.from;
    }
  }

  const Workload& work;
  Books& books;
  Slicer slicer;
  std::optional<Schedule> schedule;
  Total total;
  uint64_t most;
  Ns intended = 0, free = 0, give_up, wait_until = 0, woke = 0, own_max = 0;
  bool waiting = false;
  std::vector<uint8_t> message;
};

// What a subscriber, or the hearing side of a requester, has received.
struct Receiving {
  struct Stream {
    explicit Stream(uint64_t capacity) : seen(capacity) {}
    Seen seen;
    uint64_t next = 0, distinct = 0;
    bool heard = false, ended = false, measured = false;
    uint32_t last_sequence = 0;
    Ns last_latency = 0;
  };

  // `answers`: what comes are the echoes of what this client itself sends.
  Receiving(const Workload& work, uint32_t first, uint32_t count, bool answers = false)
      : work(work), first(first), unheard(count), known(blank(work.payload_bytes)), answers(answers),
        times(work.timed && (!work.echoed || answers)) {
    for (uint32_t at = 0; at < count; at++) streams.emplace_back(work.ledger());
    if (work.max) return;
    double gap = 1e12 / static_cast<double>(work.per_ks * (work.round_trip ? 1 : std::max(1u, count)));
    gap *= static_cast<double>(work.burst * (work.competing ? work.subscribers : 1));
    stall_ns = std::max(100 * kMillisecond, static_cast<Ns>(20 * gap));
  }
  void start(Window window, Books& into) { slicer = Slicer{window}, books = &into; }
  // A message arrived; it can have been there since `listened`, or that is not known (0).
  void arrived(View message, Ns time, Ns listened) {
    Header header{};
    if (message.size != work.payload_bytes) return foreign();
    std::memcpy(&header, message.data, header_bytes(message.size));
    header = shifted(header, -work.ahead_ns);
    if (header.publisher - first >= streams.size()) return foreign();
    Stream& stream = streams[header.publisher - first];
    if (header.sequence == kProbe) unheard -= !std::exchange(stream.heard, true);
    if (header.sequence == kEnd) stream.ended = true;
    if (header.sequence >= kEnd) return;
    if (!slicer || header.intended < slicer->window.start || header.intended > time + kSecond ||
        !stream.seen.has_room(header.sequence)) {
      return foreign();
    }
    const Window& window = slicer->window;
    if (!work.timed) time = std::max(time, header.intended);  // the clock was read some messages ago
    bool in_window = window.holds(header.intended), fresh = stream.seen.mark(header.sequence);
    received += 1;
    if (!fresh) {
      books->counts[kDuplicated] += in_window;
      return;
    }
    stream.distinct += 1;
    books->counts[kReordered] += in_window && header.sequence < stream.next;
    stream.next = std::max(stream.next, header.sequence + 1ul);
    size_t body = header_bytes(message.size);
    bool sound = !work.full || std::memcmp(message.data + body, known.data() + body, message.size - body) == 0;
    if (in_window) books->last_arrival = time, books->counts[kCorrupted] += !sound;
    auto slice = slicer->of(time);
    if (slice && !answers) {
      if (in_window || !window.open()) books->arrived += 1, books->series_delivered[*slice] += 1;
      note_silence(time);
    }
    if (in_window && sound && times) measure(stream, header, time, listened, slice);
  }
  bool complete(const Drain& drain) const {
    for (uint32_t at = 0; at < streams.size(); at++) {
      const Total* total = drain.of(first + at);
      bool all = !work.competing && total && streams[at].distinct >= total->sent;
      if (!all && !streams[at].ended) return false;
    }
    return true;
  }
  // What was expected is known; a client that was killed heard nothing after `crashed`.
  void close(const Drain& drain, Ns crashed) {
    for (uint32_t at = 0; at < streams.size(); at++) {
      const Seen& seen = streams[at].seen;
      const Total* total = drain.of(first + at);
      if (!total) continue;
      uint64_t of_window = total->window_end - total->window_first;
      uint64_t came = seen.count(total->window_first, total->window_end);
      foreign(seen.count(total->sent, seen.end()));  // nobody sent them
      if (answers) {
        books->counts[kUnanswered] += of_window - came;
        continue;
      }
      books->counts[kDelivered] += came;
      if (!work.competing) books->counts[kExpected] += of_window;
    }
    if (slicer && !answers && !slicer->window.open() && !work.competing && !drain.totals.empty()) {
      note_silence(std::max(std::min(slicer->window.to, crashed), last_heard));
    }
  }

  const Workload& work;
  uint32_t first, unheard;
  std::vector<Stream> streams;
  std::vector<uint8_t> known;
  bool answers, times;  // `times`: whether it measures them
  std::optional<Slicer> slicer;
  Books* books = nullptr;  // from the start on
  uint64_t received = 0;

 private:
  Ns stall_ns = kSecond / 2, last_heard = 0;

  void foreign(uint64_t count = 1) {
    if (books) books->counts[kCorrupted] += count, books->counts[kUnidentified] += count;
  }
  void note_silence(Ns time) {
    last_heard = std::max(last_heard, slicer->window.from);
    if (time > last_heard + stall_ns) books->stalls.add({1, time - last_heard, last_heard - slicer->window.from});
    last_heard = std::max(last_heard, time);
  }
  void measure(Stream& stream, const Header& header, Ns time, Ns listened, std::optional<size_t> slice) {
    if (time < header.intended) {
      books->counts[kNegative] += 1;
      return;
    }
    Ns intended = time - header.intended;
    bool tells_own = known.size() >= 32 && header.intended <= header.free && header.free <= header.sent;
    Ns value = intended - std::min(intended, tells_own ? header.sent - header.free : 0);
    auto& times = books->times;
    times[kLatency].record(value);
    times[kIntendedLatency].record(intended);
    if (known.size() >= 24 && time >= header.sent) times[kServiceLatency].record(time - header.sent);
    if (listened) times[kReceiveLag].record(time - std::min(time, listened));
    if (slice && *slice < books->series_latency.size()) books->series_latency[*slice].record(value);
    if (stream.measured && (work.competing || stream.last_sequence + 1 == header.sequence)) {
      books->jitter_sum +=
          static_cast<double>(std::max(value, stream.last_latency) - std::min(value, stream.last_latency));
      books->jitter_pairs += 1;
    }
    stream.measured = true, stream.last_sequence = header.sequence, stream.last_latency = value;
  }
};

// Since when a receiving thread has been occupied. A library does not say whether a message was there before it was
// asked for: one that it hands over at once may have been, and waited while the thread saw to those before it.
class Occupied {
 public:
  void listens(Ns at) { asked_ = at, backlog_ += at - std::min(at, taken_); }
  void idle() { backlog_ = 0, taken_ = kNever; }
  Ns since(Ns time) {
    if (time - asked_ > 5'000) backlog_ = 0;
    taken_ = time;
    return asked_ == 0 ? 0 : time - std::min(backlog_, time - 1);
  }

 private:
  Ns backlog_ = 0, asked_ = 0, taken_ = kNever;
};

// One client on its thread.
class Client {
 public:
  Client(const Workload& work, const Control& control, Role role, const Json& entry)
      : role(role), id(entry.at("id")), hears_first(entry.value("hears_first", 0u)),
        hears_count(entry.value("hears_count", 0u)), work_(work), control_(control),
        echoes_(work.echoed && role == Role::kSubscriber && id == 0) {}

  // Sends or receives until the run is stopped.
  void run(const std::function<void(Word)>& say) {
    prctl(PR_SET_TIMERSLACK, 1);
    switch (role) {
      case Role::kPublisher: work_.echoed ? publish_and_hear(say) : publish(say); break;
      case Role::kSubscriber: subscribe(say); break;
      case Role::kRequester: request(say); break;
      case Role::kReplier: reply(say); break;
    }
    bool drains = role == Role::kSubscriber || role == Role::kReplier;
    for (; !control_.stopped(); sleep_until(now() + 5 * kMillisecond)) {  // it has been killed
      if (drains && !drained_ && control_.drain) say(Word::kDrained), drained_ = true;
    }
    const Drain* drain = control_.drain;
    if (!receiving || !books || !drain) return;
    bool of_own = role == Role::kRequester || receiving->answers;
    receiving->close(of_own ? own_totals() : *drain, crashed_);
  }

  Role role;
  uint32_t id, hears_first, hears_count;
  std::unique_ptr<Socket> socket;
  double spin_cores = 0;
  Counter counter;
  std::optional<Sending> sending;
  std::optional<Receiving> receiving;
  std::optional<Pacer> pacer;
  std::optional<Books> books;  // from the start on

 private:
  const Workload& work_;
  const Control& control_;
  bool echoes_;
  std::vector<uint8_t> echo_;
  Ns crashed_ = kNever;
  bool drained_ = false;

  Drain own_totals() const {
    Drain drain{std::vector<std::optional<Total>>(id + 1), 0};
    if (sending) drain.totals[id] = sending->total;
    return drain;
  }
  void end() {
    if (control_.stopped() || !control_.silenced() || crashed_ != kNever) return;
    crashed_ = now();
    socket->crash();
  }
  void count_sent() {
    counter.sent.store(sending->total.sent, std::memory_order_relaxed);
    Ns lag = std::exchange(sending->own_max, 0);
    if (lag > counter.own_lag_max.load(std::memory_order_relaxed)) counter.own_lag_max = lag;
  }
  // The time between two markers.
  Ns marks_every() const { return std::clamp(work_.publishers * kMillisecond / 10, 5 * kMillisecond, kSecond); }
  // Sends probes or end markers until something is so; false: the run has ended before.
  template <class Until>
  bool mark(uint32_t sequence, Until until) {
    Ns every = marks_every();
    uint32_t copies = work_.competing ? work_.subscribers : 1;
    // How long clients take to find each other is known no better than this.
    if (sequence == kProbe) every = std::clamp(Ns(copies) * work_.publishers * kMillisecond / 10, kMillisecond, every);
    std::vector<uint8_t> marker = blank(work_.payload_bytes);
    for (Ns next = 0; !control_.silenced(); sleep_until(next)) {
      if (until()) return true;
      if (now() < next) continue;
      for (uint32_t copy = 0; copy < copies; copy++) {
        Header header = shifted({now(), id, sequence, now(), now()}, work_.ahead_ns);
        std::memcpy(marker.data(), &header, header_bytes(marker.size()));
        socket->send(marker.data(), marker.size());
      }
      next = now() + every;
    }
    return false;
  }
  // The instant of the start is known.
  Window begin() {
    Window window(work_, control_.start_ns);
    books.emplace(window);
    if (receiving) receiving->start(window, *books);
    return window;
  }
  void begin_sending() {
    Window window = begin();
    sending.emplace(work_, id, window, *books);
    pacer.emplace(work_, spin_cores, window.from);
  }

  void publish(const std::function<void(Word)>& say) {
    say(Word::kReady);
    if (!mark(kProbe, [this] { return control_.start_ns > 0; })) return end();
    begin_sending();
    Sending& out = *sending;
    for (Ns time = now(); !control_.silenced();) {
      auto next = out.next(time);
      if (next == Sending::kDone) break;
      if (next == Sending::kWait) {
        time = pacer->wait(out.wait_until);
        continue;
      }
      uint64_t most = out.at_once(), taken = 0;
      for (out.stamp(time); socket->send(out.message.data(), out.message.size()); out.stamp_later(taken)) {
        if (++taken == most || control_.silenced()) break;
      }
      Ns began = std::exchange(time, now());
      if (taken > 0) out.accepted(began, time, taken), count_sent();
      if (taken < most) out.system_was_late(time);
    }
    end();
    out.finish(crashed_);
    count_sent();
    say(Word::kSent);
    mark(kEnd, [] { return false; });
    end();
  }

  void subscribe(const std::function<void(Word)>& say) {
    receiving.emplace(work_, hears_first, hears_count);
    Receiving& in = *receiving;
    Occupied occupied;
    uint32_t stride = work_.stride(), since_clock = 0, since_look = 0;
    bool ready = false;
    for (Ns time = 0; !control_.silenced();) {
      if (stride == 1) occupied.listens(now());
      if (View message = socket->recv()) {
        if (since_clock == 0) time = now();
        if (++since_clock >= stride) since_clock = 0;
        if (!in.slicer && control_.start_ns > 0) begin();
        if (echoes_) message = echo(message);
        in.arrived(message, time, stride == 1 ? occupied.since(time) : 0);
        // While it drains, end markers come more often than it would wait in vain.
        if (in.slicer && ++since_look < 256 && !control_.drain.load(std::memory_order_acquire)) continue;
      } else {
        since_clock = 0;
        occupied.idle();
        if (work_.spin) sched_yield();
      }
      since_look = 0;
      counter.received.store(in.received, std::memory_order_relaxed);
      if (!ready && in.unheard == 0) say(Word::kReady), ready = true;
      const Drain* drain = control_.drain;
      if (drain && !drained_ && (in.complete(*drain) || now() >= drain->deadline)) say(Word::kDrained), drained_ = true;
    }
    if (!in.slicer && control_.start_ns > 0) begin();
    end();
  }

  // Sends a message back as it came; not when the drain has begun, for then nobody waits for it. End markers have no
  // answer.
  View echo(View message) {
    echo_.assign(message.data, message.data + message.size);
    Header header{};
    std::memcpy(&header, echo_.data(), std::min(header_bytes(echo_.size()), echo_.size()));
    if (header.sequence != kEnd) {
      while (!socket->send(echo_.data(), echo_.size()) && !control_.silenced() && !control_.drain.load()) {}
    }
    return {echo_.data(), echo_.size()};
  }

  // Publishes, and waits for the echo of each message before the next one.
  void publish_and_hear(const std::function<void(Word)>& say) {
    receiving.emplace(work_, id, 1, true);
    Receiving& in = *receiving;
    std::vector<uint8_t> probe = blank(work_.payload_bytes);
    bool ready = false;
    for (Ns next = 0; control_.start_ns == 0 && !control_.silenced();) {
      if (Ns time = now(); time >= next) {
        next = time + 5 * kMillisecond;
        Header header = shifted({time, id, kProbe, time, time}, work_.ahead_ns);
        std::memcpy(probe.data(), &header, header_bytes(probe.size()));
        socket->send(probe.data(), probe.size());
      }
      if (View answer = socket->recv()) in.arrived(answer, now(), 0);
      if (!ready && in.unheard == 0) say(Word::kReady), ready = true;
    }
    if (control_.silenced()) return end();
    ask_in_turn(true);
    say(Word::kSent);
    mark(kEnd, [] { return false; });
    end();
  }
  // Sends by the schedule, each message when the one before it has been answered: by its own answer, or by any.
  void ask_in_turn(bool own) {
    begin_sending();
    Sending& out = *sending;
    for (Ns time = now(); !control_.silenced();) {
      auto next = out.next(time);
      if (next == Sending::kDone) break;
      if (next == Sending::kWait) {
        time = pacer->wait(out.wait_until);
        continue;
      }
      out.stamp(time);
      auto sequence = static_cast<uint32_t>(out.total.sent);
      if (socket->send(out.message.data(), out.message.size())) {
        out.accepted(time, time);
        time = await_answer(own ? &sequence : nullptr, time + work_.drain_ns);
        count_sent();
        if (role == Role::kRequester) counter.received.store(receiving->received, std::memory_order_relaxed);
      } else {
        time = now();
      }
      out.system_was_late(time);  // waiting for the answer, or for room, is the system's doing
    }
    end();
    out.finish(crashed_);
    count_sent();
  }
  // Waits for any answer, or for that of a message; when it came, or the wait was over. What is of another length may
  // have been it. Answers to probes, and those that come late, are taken on the way.
  Ns await_answer(const uint32_t* asked, Ns deadline) {
    for (;;) {
      View answer = socket->recv();
      Ns time = now();
      if (answer) {
        receiving->arrived(answer, time, 0);
        if (!asked || answer.size != work_.payload_bytes) return time;
        Header header{};
        std::memcpy(&header, answer.data, header_bytes(answer.size));
        if (header.sequence == *asked) return time;
      }
      if (time >= deadline || control_.silenced()) return time;
    }
  }

  void request(const std::function<void(Word)>& say) {
    receiving.emplace(work_, id, 1);
    Receiving& in = *receiving;
    std::vector<uint8_t> probe = blank(work_.payload_bytes);
    while (in.unheard && !control_.silenced()) {
      Header header = shifted({now(), id, kProbe, now(), now()}, work_.ahead_ns);
      std::memcpy(probe.data(), &header, header_bytes(probe.size()));
      Ns again = socket->loses_requests() ? now() + marks_every() : kNever;
      if (socket->send(probe.data(), probe.size())) await_answer(nullptr, again);
    }
    if (control_.silenced()) return end();
    say(Word::kReady);
    while (control_.start_ns == 0 && !control_.silenced()) sleep_until(now() + 5 * kMillisecond);
    if (control_.silenced()) return end();
    ask_in_turn(socket->loses_requests());
    say(Word::kSent);
    while (!control_.silenced()) sleep_until(now() + 5 * kMillisecond);
    end();
  }

  void reply(const std::function<void(Word)>& say) {
    say(Word::kReady);
    std::vector<uint8_t> echo(work_.payload_bytes);
    for (uint64_t received = 0; !control_.silenced();) {
      if (!drained_ && control_.drain.load(std::memory_order_acquire)) say(Word::kDrained), drained_ = true;
      View request = socket->recv();
      if (!request) continue;
      echo.assign(request.data, request.data + request.size);
      counter.received.store(++received, std::memory_order_relaxed);
      while (!socket->send(echo.data(), echo.size()) && !control_.silenced()) {}
    }
    end();
  }
};

}  // namespace pubmark
