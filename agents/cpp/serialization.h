// Fast CDR on the way of a message: what goes out is written from an object, and what comes is read into one, as by the
// code that its makers' generator makes of an IDL file.
#pragma once

#include <fastcdr/Cdr.h>
#include <fastcdr/config.h>

#include <array>
#include <cstring>
#include <type_traits>

#include "driver.h"

namespace pubmark {

using eprosima::fastcdr::Cdr;
using eprosima::fastcdr::FastBuffer;

// `struct Pose { long sec; unsigned long nanosec; double position[3]; double orientation[4]; };`
struct Pose {
  int32_t sec;
  uint32_t nanosec;
  std::array<double, 3> position;
  std::array<double, 4> orientation;
  void serialize(Cdr& cdr) const { cdr << sec << nanosec << position << orientation; }
  void deserialize(Cdr& cdr) { cdr >> sec >> nanosec >> position >> orientation; }
};

// `struct Reading { float x, y, z; unsigned long id; };`
struct Reading {
  float x, y, z;
  uint32_t id;
  void serialize(Cdr& cdr) const { cdr << x << y << z << id; }
  void deserialize(Cdr& cdr) { cdr >> x >> y >> z >> id; }
};
static_assert(sizeof(Pose) == 64 && sizeof(Reading) == 16, "a message's bytes are theirs");

// `struct Track { Pose pose; sequence<Reading> readings; sequence<octet> rest; };`
struct Track {
  Pose pose;
  std::vector<Reading> readings;
  std::vector<uint8_t> rest;
};

// How the messages of one socket are written and read.
class Serialization {
 public:
  explicit Serialization(const Spec& spec)
      : kind_(word(spec.options, "serialization", {"none", "cdr", "cdr-struct"})), on_(kind_ != "none"),
        structured_(kind_ == "cdr-struct"), payload_(spec.payload_bytes) {
    if (structured_ && payload_ < sizeof(Pose)) {
      throw Failure("serialization cdr-struct needs a payload of 64 bytes, which its pose has: this one has " +
                    std::to_string(payload_));
    }
  }
  bool on() const { return on_; }
  // Bytes of a message as it goes out: with encapsulation and lengths.
  size_t bytes() const { return payload_ + (structured_ ? 12 : on_ ? 8 : 0); }
  Json applied() const { return {{"serialization", kind_}, {"serialized_bytes", bytes()}}; }

  // Fills the object in and writes it; how many bytes that makes.
  size_t write(const uint8_t* data, size_t size, void* into, size_t room) {
    FastBuffer buffer(static_cast<char*>(into), room);
    Cdr cdr(buffer, Cdr::DEFAULT_ENDIAN, Cdr::DDS_CDR);
    cdr.serialize_encapsulation();
    if (structured_) {
      fill(data, size);
      cdr << track_.pose << track_.readings << track_.rest;
    } else {
      cdr.serializeSequence(data, size);
    }
    return cdr.getSerializedDataLength();
  }
  // Reads an object, and out of it the bytes of the message; what is none comes back as it is.
  View read(const void* from, size_t size) {
    try {
      FastBuffer buffer(const_cast<char*>(static_cast<const char*>(from)), size);
      Cdr cdr(buffer, Cdr::DEFAULT_ENDIAN, Cdr::DDS_CDR);
      cdr.read_encapsulation();
      if (structured_) {
        cdr >> track_.pose >> track_.readings >> track_.rest;
        gather();
      } else {
        cdr >> bytes_;
      }
      return {bytes_.data(), bytes_.size()};
    } catch (const eprosima::fastcdr::exception::Exception&) {
      bytes_.assign(static_cast<const uint8_t*>(from), static_cast<const uint8_t*>(from) + size);
      return {bytes_.data(), bytes_.size()};
    }
  }

 private:
  void fill(const uint8_t* data, size_t size) {
    size_t readings = (size - sizeof(Pose)) / sizeof(Reading), at = sizeof(Pose) + readings * sizeof(Reading);
    track_.readings.resize(readings);
    copy(&track_.pose, data, sizeof(Pose));
    copy(track_.readings.data(), data + sizeof(Pose), readings * sizeof(Reading));
    track_.rest.assign(data + at, data + size);
  }
  void gather() {
    size_t readings = track_.readings.size() * sizeof(Reading), at = sizeof(Pose) + readings;
    bytes_.resize(at + track_.rest.size());
    copy(bytes_.data(), &track_.pose, sizeof(Pose));
    copy(bytes_.data() + sizeof(Pose), track_.readings.data(), readings);
    copy(bytes_.data() + at, track_.rest.data(), track_.rest.size());
  }
  static void copy(void* into, const void* from, size_t size) {
    if (size > 0) std::memcpy(into, from, size);
  }

  std::string kind_;
  bool on_, structured_;  // asked for each message
  size_t payload_;
  Track track_{};
  std::vector<uint8_t> bytes_;
};

// A socket of a library that carries bytes as they are.
class Serialized : public Socket {
 public:
  using Open = TwoWays::Open;
  static std::unique_ptr<Socket> open(const Spec& spec, const Open& open) {
    Serialization serialization(spec);
    Spec carried = spec;
    carried.payload_bytes = serialization.bytes();
    return std::make_unique<Serialized>(std::move(serialization), open(carried));
  }
  Serialized(Serialization serialization, std::unique_ptr<Socket> carrier)
      : serialization_(std::move(serialization)), carrier_(std::move(carrier)), out_(serialization_.bytes()) {}

  std::string endpoint() const override { return carrier_->endpoint(); }
  bool send(const uint8_t* data, size_t size) override {
    if (!serialization_.on()) return carrier_->send(data, size);
    return carrier_->send(out_.data(), serialization_.write(data, size, out_.data(), out_.size()));
  }
  View recv() override {
    View come = carrier_->recv();
    return come && serialization_.on() ? serialization_.read(come.data, come.size) : come;
  }
  Json applied() const override {
    Json all = carrier_->applied();
    all.update(serialization_.applied());
    return all;
  }
  void crash() override { carrier_->crash(); }

 private:
  Serialization serialization_;
  std::unique_ptr<Socket> carrier_;
  std::vector<uint8_t> out_;
};

}  // namespace pubmark
