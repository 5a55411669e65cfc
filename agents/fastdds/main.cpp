#include "fastdds.h"

using namespace pubmark;

int main() {
  play(
      {"fastdds",
       BUILD,
       FLAGS,
       {{"runtime", "g++ " __VERSION__}, {"fastdds", FastDdsDriver::version()}, {"fastcdr", FASTCDR_VERSION_STR}},
       {"pairs", "fan-out", "fan-in", "request-reply", "fan-out-echo"},
       {"ipc", "udp"},
       false,
       {{"fastdds",
         {"queue_messages", "queue_bytes", "socket_buffer", "reliability", "history_depth", "heartbeat", "data_sharing",
          "multicast", "publish_mode", "flow_bytes_per_period", "flow_period", "serialization", "batch"},
         [](const Json&) { return std::make_unique<FastDdsDriver>(); }}}});
}
