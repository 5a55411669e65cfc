// Whether the types that are written by hand are, byte for byte, what the compiler of IDL makes of types.idl.
#include <cstdio>

#include "../cpp/serialization.h"
#include "types.h"

namespace {

using pubmark::Cdr;
using Bytes = std::vector<uint8_t>;

Track track(const Bytes& data) {
  size_t readings = (data.size() - sizeof(pubmark::Pose)) / sizeof(pubmark::Reading), at = sizeof(pubmark::Pose);
  pubmark::Pose pose;
  std::memcpy(&pose, data.data(), sizeof pose);
  Track made;
  made.at().sec(pose.sec), made.at().nanosec(pose.nanosec);
  made.at().position(pose.position), made.at().orientation(pose.orientation);
  for (; readings > 0; readings--, at += sizeof(pubmark::Reading)) {
    pubmark::Reading reading;
    std::memcpy(&reading, data.data() + at, sizeof reading);
    Reading one;
    one.x(reading.x), one.y(reading.y), one.z(reading.z), one.id(reading.id);
    made.all().push_back(one);
  }
  made.rest().assign(data.begin() + at, data.end());
  return made;
}

// A message as the generated code writes it.
Bytes generated(const Bytes& data, bool structured) {
  Bytes written(data.size() + 16);
  eprosima::fastcdr::FastBuffer buffer(reinterpret_cast<char*>(written.data()), written.size());
  Cdr cdr(buffer, Cdr::DEFAULT_ENDIAN, Cdr::DDS_CDR);
  cdr.serialize_encapsulation();
  if (structured) {
    track(data).serialize(cdr);
  } else {
    Octets octets;
    octets.bytes(data);
    octets.serialize(cdr);
  }
  written.resize(cdr.getSerializedDataLength());
  return written;
}

// The same as the agents write it.
Bytes by_hand(const Bytes& data, const char* kind) {
  pubmark::Json options{{"serialization", kind}};
  pubmark::Spec spec{pubmark::Role::kPublisher, 0, "fan-out", "udp", data.size(), false, "", {}, 1, 1, 0, "", options};
  pubmark::Serialization serialization(spec);
  Bytes written(data.size() + 16);
  written.resize(serialization.write(data.data(), data.size(), written.data(), written.size()));
  return written;
}

}  // namespace

int main() {
  int different = 0;
  for (size_t size : {16, 64, 65, 79, 80, 100, 1024, 1500, 65536, 1048576}) {
    Bytes data(size);
    uint32_t random = size;
    for (auto& byte : data) byte = (random = random * 1664525 + 1013904223) >> 24;
    for (bool structured : {false, true}) {
      const char* kind = structured ? "cdr-struct" : "cdr";
      if (structured && size < sizeof(pubmark::Pose)) continue;
      bool same = generated(data, structured) == by_hand(data, kind);
      std::printf("%s of %zu bytes: %s\n", kind, size, same ? "equal" : "different");
      different += !same;
    }
  }
  return different > 0;
}
