#include "cyclonedds.h"

using namespace pubmark;

int main() {
  play({"cyclonedds",
        BUILD,
        FLAGS,
        {{"runtime", "g++ " __VERSION__}, {"cyclonedds", DDS_VERSION}},
        {"pairs", "fan-out", "fan-in", "request-reply", "fan-out-echo"},
        {"udp"},
        false,
        {{"cyclonedds",
          {"queue_messages", "queue_bytes", "socket_buffer", "reliability", "history_depth", "heartbeat", "multicast"},
          [](const Json&) { return std::make_unique<CycloneDriver>(); }}}});
}
