#include "null.h"
#include "zeromq.h"

using namespace pubmark;

int main() {
  play({"zeromq-cpp",
        BUILD,
        FLAGS,
        {{"runtime", "g++ " __VERSION__}, {"binding", ZeroMqDriver::binding()}, {"fastcdr", FASTCDR_VERSION_STR}},
        {"pairs", "fan-out", "fan-in", "request-reply", "fan-out-echo", "pipeline"},
        {"inproc", "ipc", "tcp"},
        true,
        {{"zeromq",
          {"linger", "io_threads", "queue_messages", "queue_bytes", "socket_buffer", "tcp_nodelay", "library", "idiom",
           "request_reply", "pairs", "serialization", "batch"},
          [](const Json& options) { return std::make_unique<ZeroMqDriver>(options); }},
         {"null", {"queue_messages", "queue_bytes"}, [](const Json&) { return std::make_unique<NullDriver>(); }}}});
}
