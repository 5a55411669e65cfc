// The floor: the same clients, with bounded queues between their threads in place of a library.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>

#include "../cpp/driver.h"

namespace pubmark {

// A ring of messages; whoever finds it full, or empty, waits for a moment.
class Queue {
 public:
  Queue(size_t messages, size_t bytes) : messages_(messages), bytes_(bytes) {}

  bool push(const uint8_t* data, size_t size, int wait_ms) {
    std::unique_lock lock(mutex_);
    if (closed_) return true;
    if (!wait(
            lock, room_, [this] { return count_ < messages_; }, wait_ms))
      return false;
    if (slots_.empty()) slots_.resize(messages_ * bytes_);
    std::memcpy(&slots_[(first_ + count_++) % messages_ * bytes_], data, size);
    lock.unlock();
    filled_.notify_one();
    return true;
  }
  View pop(std::vector<uint8_t>& into, int wait_ms) {
    std::unique_lock lock(mutex_);
    if (!wait(
            lock, filled_, [this] { return count_ > 0; }, wait_ms))
      return {};
    std::memcpy(into.data(), &slots_[first_ * bytes_], bytes_);
    first_ = (first_ + 1) % messages_;
    count_ -= 1;
    lock.unlock();
    room_.notify_one();
    return {into.data(), bytes_};
  }
  // Nobody takes anything out any more: what is put in is thrown away.
  void close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
  }

 private:
  template <class Ready>
  bool wait(std::unique_lock<std::mutex>& lock, std::condition_variable& changed, Ready ready, int wait_ms) {
    return ready() || (wait_ms > 0 && changed.wait_for(lock, std::chrono::milliseconds(wait_ms), ready));
  }
  std::mutex mutex_;
  std::condition_variable filled_, room_;
  size_t messages_, bytes_, first_ = 0, count_ = 0;
  bool closed_ = false;
  std::vector<uint8_t> slots_;
};

class NullSocket : public Socket {
 public:
  explicit NullSocket(const Spec& spec)
      : endpoint_(spec.bind), in_turn_(spec.pattern == "pipeline"), wait_ms_(spec.receive_ms()), queue_(spec.queue()),
        inbox_(std::make_shared<Queue>(queue_, spec.payload_bytes)), message_(spec.payload_bytes) {}

  // Sends into the queue of that one.
  void feed(const NullSocket& other) { outlets_.push_back(other.inbox_); }

  std::string endpoint() const override { return endpoint_; }
  bool send(const uint8_t* data, size_t size) override {
    if (in_turn_) {
      for (size_t tried = 0; tried < outlets_.size(); tried++) {
        if (outlet().push(data, size, 0)) return true;
      }
      return outlets_.empty() || outlet().push(data, size, kWaitMs);
    }
    for (; next_ < outlets_.size(); next_++) {  // after a refusal with the one that refused
      if (!outlets_[next_]->push(data, size, kWaitMs)) return false;
    }
    next_ = 0;
    return true;
  }
  View recv() override { return inbox_->pop(message_, wait_ms_); }
  Json applied() const override { return {{"queue_messages", queue_}, {"batch_messages", 1}}; }
  void crash() override {
    inbox_->close();
    outlets_.clear();
  }

 private:
  Queue& outlet() { return *outlets_[next_++ % outlets_.size()]; }

  std::string endpoint_;
  bool in_turn_;
  int wait_ms_;
  uint64_t queue_;
  std::shared_ptr<Queue> inbox_;
  std::vector<std::shared_ptr<Queue>> outlets_;
  size_t next_ = 0;
  std::vector<uint8_t> message_;
};

class NullDriver : public Driver {
 public:
  std::unique_ptr<Socket> open(const Spec& spec) override {
    if (spec.transport != "inproc") throw Failure("null has no transport " + spec.transport + ": use inproc");
    auto socket = std::make_unique<NullSocket>(spec);
    if (!spec.bind.empty()) bound_[spec.bind] = socket.get();
    for (const auto& endpoint : spec.connect) {
      auto peer = bound_.find(endpoint);
      if (peer == bound_.end()) throw Failure("nobody is bound to " + endpoint + " in this process");
      if (spec.role == Role::kRequester || spec.both_ways()) socket->feed(*peer->second);
      peer->second->feed(*socket);
    }
    return socket;
  }
  Json versions() const override { return {{"library", "null"}, {"version", "1"}}; }
  Json made() const override {
    return {{"binding", "none"},
            {"library", "std::mutex, std::condition_variable"},
            {"copies", "into the queue, and out of it"}};
  }

 private:
  std::map<std::string, NullSocket*> bound_;
};

}  // namespace pubmark
