// What a messaging library has to offer to be played: sockets that block for a moment.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace pubmark {

using Json = nlohmann::json;
using Ns = uint64_t;

// The longest that a send or a receive blocks before it hands control back.
constexpr int kWaitMs = 10;

// Why something cannot be done: what, where, and what to do. It ends the run.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Thrown when a driver is made: the program is to begin anew with this in its environment.
struct Restart {
  std::string variable, value;
};

enum class Role { kPublisher, kSubscriber, kRequester, kReplier };

// A socket to open.
struct Spec {
  Role role;
  uint32_t id;
  std::string pattern, transport;
  uint64_t payload_bytes;
  bool spin;                         // whether recv() comes back at once
  std::string bind;                  // empty: it connects
  std::vector<std::string> connect;  // endpoints as their binders told them
  std::string answers;               // fan-out-echo: where the publisher binds for them, or subscriber 0 connects to
  const Json& options;

  // Whether its messages are the ones that are counted as sent.
  bool sends() const { return role == Role::kPublisher || role == Role::kRequester; }
  // Whether it is a client of fan-out-echo that sends and receives.
  bool both_ways() const { return pattern == "fan-out-echo" && (role == Role::kPublisher || id == 0); }

  int receive_ms() const { return spin ? 0 : kWaitMs; }
  uint64_t number(const char* option, uint64_t otherwise) const { return options.value(option, otherwise); }
  // Messages that a queue may hold, by count and by bytes.
  uint64_t queue() const {
    uint64_t by_bytes = number("queue_bytes", 64 << 20) / std::max<uint64_t>(1, payload_bytes);
    return std::max<uint64_t>(1, std::min(number("queue_messages", 1000), by_bytes));
  }
};

// A received message; it stays until the next call on its socket.
struct View {
  const uint8_t* data = nullptr;
  size_t size = 0;
  explicit operator bool() const { return data != nullptr; }
};

// Used by one thread at a time.
class Socket {
 public:
  virtual ~Socket() = default;
  virtual std::string endpoint() const { return {}; }
  virtual std::string answers() const { return {}; }        // where answers go to, if that is elsewhere
  virtual bool send(const uint8_t* data, size_t size) = 0;  // false: it is full, offer it again
  virtual View recv() = 0;                                  // nothing came within kWaitMs: an empty view
  // Whether a request is lost when no replier is there yet, and a reply may be to an earlier one.
  virtual bool loses_requests() const { return false; }
  virtual Json applied() const = 0;
  virtual void crash() = 0;  // closes at once, as if the process were killed; nothing is called after it
};

class Driver {
 public:
  virtual ~Driver() = default;
  virtual std::unique_ptr<Socket> open(const Spec& spec) = 0;
  virtual Json versions() const = 0;  // `library`, `version`, `path`, `binding`, `runtime`
  virtual Json made() const = 0;      // how the binding works: `binding`, `library`, `copies`, …
  // Removes what would outlive the process; where it does not end in order, clients are playing on other threads.
  virtual void leave(bool in_order) { (void)in_order; }
};

// The socket of a client that sends and receives, made of one for each way.
class TwoWays : public Socket {
 public:
  using Open = std::function<std::unique_ptr<Socket>(const Spec& spec)>;
  // Opens both, of a client that needs them; of others the one.
  static std::unique_ptr<Socket> open(const Spec& spec, const Open& open) {
    if (!spec.both_ways()) return open(spec);
    if (spec.answers.empty()) throw Failure("nobody said where answers go: the publisher's bound has to name it");
    bool publishes = spec.role == Role::kPublisher;
    Spec messages = spec, answers = spec;
    messages.pattern = answers.pattern = "fan-out";
    answers.role = publishes ? Role::kSubscriber : Role::kPublisher;
    answers.bind = publishes ? spec.answers : "";
    answers.connect.clear();
    if (!publishes) answers.connect.push_back(spec.answers);
    auto first = open(messages), second = open(answers);
    if (!publishes) std::swap(first, second);
    return std::make_unique<TwoWays>(std::move(first), std::move(second));
  }
  TwoWays(std::unique_ptr<Socket> out, std::unique_ptr<Socket> back) : out_(std::move(out)), back_(std::move(back)) {}

  std::string endpoint() const override { return out_->endpoint(); }
  std::string answers() const override { return back_->endpoint(); }
  bool send(const uint8_t* data, size_t size) override { return out_->send(data, size); }
  View recv() override { return back_->recv(); }
  Json applied() const override { return out_->applied(); }
  void crash() override { out_->crash(), back_->crash(); }

 private:
  std::unique_ptr<Socket> out_, back_;
};

// A driver that the agent names in its hello.
struct DriverKind {
  std::string name;
  std::vector<std::string> options;
  std::function<std::unique_ptr<Driver>(const Json& options)> make;
};

struct About {
  std::string name;
  std::string build, flags;
  Json versions;  // known before a driver is made
  std::vector<std::string> patterns, transports;
  bool crash;                       // whether its sockets can be killed
  std::vector<DriverKind> drivers;  // the first is what the agent is for
};

// An option that is one of a few words.
inline std::string word(const Json& options, const char* name, std::vector<std::string> known) {
  std::string chosen = options.value(name, known.front());
  for (const auto& one : known) {
    if (chosen == one) return chosen;
  }
  std::string list;
  for (const auto& one : known) list += (list.empty() ? "" : " or ") + one;
  throw Failure("the option " + std::string(name) + " is \"" + chosen + "\": it can be " + list);
}

// A time as options have it, such as 10s or 1.5ms.
inline Ns time_ns(const std::string& text) {
  size_t end = 0;
  double number = 0;
  try {
    number = std::stod(text, &end);
  } catch (const std::exception&) {
    throw Failure("\"" + text + "\" is no time: write a number with its unit, such as 10ms");
  }
  for (auto [unit, factor] : {std::pair{"ns", 1e0}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 6e10}, {"h", 3.6e12}}) {
    if (text.substr(end) == unit) return static_cast<Ns>(number * factor);
  }
  throw Failure("\"" + text + "\" is no time: its unit is one of ns, us, ms, s, m, h");
}

inline std::string time_text(Ns ns) {
  for (auto [unit, factor] : {std::pair{"s", 1000000000ul}, {"ms", 1000000ul}, {"us", 1000ul}}) {
    if (ns % factor == 0) return std::to_string(ns / factor) + unit;
  }
  return std::to_string(ns) + "ns";
}

// Plays runs over standard input and output, by the agent protocol; does not return.
[[noreturn]] void play(const About& about);

}  // namespace pubmark
