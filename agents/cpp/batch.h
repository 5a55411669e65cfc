// Several messages in one of the library's: an array of messages, as an application sends that gathers them.
#pragma once

#include <cstring>

#include "books.h"
#include "driver.h"

namespace pubmark {

// Gathers `batch` messages, each behind its length, before the library is called; hands them out one by one. The
// markers at the beginning and at the end of a stream wait for nobody.
class Batched : public Socket {
 public:
  using Open = TwoWays::Open;
  static std::unique_ptr<Socket> open(const Spec& spec, const Open& open) {
    uint64_t batch = spec.number("batch", 1);
    if (batch == 1) return open(spec);
    if (batch == 0) throw Failure("batch is 0, and nothing would ever be sent: it is 1 or more");
    if (spec.pattern == "request-reply" || spec.pattern == "fan-out-echo") {
      throw Failure("batch is " + std::to_string(batch) + ", and in " + spec.pattern +
                    " the next message waits for the answer to the last: leave batch at 1");
    }
    if (spec.options.value("serialization", "none") == "cdr-struct") {
      throw Failure("batch is " + std::to_string(batch) + ": it goes with serialization none and cdr");
    }
    if (batch > kMostBytes / (spec.payload_bytes + kLength)) {
      throw Failure("batch is " + std::to_string(batch) + ": of this payload it makes more than 64 MiB");
    }
    Spec carried = spec;
    carried.payload_bytes = batch * (spec.payload_bytes + kLength);
    return std::make_unique<Batched>(batch, open(carried));
  }
  Batched(uint64_t batch, std::unique_ptr<Socket> carrier) : batch_(batch), carrier_(std::move(carrier)) {}

  std::string endpoint() const override { return carrier_->endpoint(); }
  bool send(const uint8_t* data, size_t size) override {
    size_t before = out_.size();
    uint32_t length = size;
    out_.resize(before + kLength + size);
    std::memcpy(out_.data() + before, &length, kLength);
    std::memcpy(out_.data() + before + kLength, data, size);
    if (gathered_ + 1 < batch_ && !marks(data, size)) return ++gathered_;
    bool sent = carrier_->send(out_.data(), out_.size());
    out_.resize(sent ? 0 : before);  // this one is offered again
    if (sent) gathered_ = 0;
    return sent;
  }
  View recv() override {
    if (come_.size == 0) come_ = carrier_->recv();
    uint32_t length = 0;
    if (come_.size >= kLength) std::memcpy(&length, come_.data, kLength);
    // What is no batch is handed out as it is, for the books to say so.
    if (come_.size < kLength || length > come_.size - kLength) return std::exchange(come_, {});
    View message{come_.data + kLength, length};
    come_ = {message.data + length, come_.size - kLength - length};
    return message;
  }
  Json applied() const override {
    Json all = carrier_->applied();
    all["batch"] = batch_;
    return all;
  }
  void crash() override { carrier_->crash(); }

 private:
  static constexpr size_t kLength = 4;
  static constexpr uint64_t kMostBytes = 64 << 20;

  static bool marks(const uint8_t* data, size_t size) {
    Header header{};
    std::memcpy(&header, data, std::min(size, header_bytes(size)));
    return header.sequence >= kEnd;
  }

  uint64_t batch_, gathered_ = 0;
  std::unique_ptr<Socket> carrier_;
  std::vector<uint8_t> out_;
  View come_;
};

}  // namespace pubmark
