// libzmq through cppzmq.
#pragma once

#include <dlfcn.h>

#include <filesystem>
#include <fstream>
#include <zmq.hpp>

#include "../cpp/batch.h"
#include "../cpp/serialization.h"

namespace pubmark {

inline zmq::socket_type zeromq_type(const Spec& spec) {
  bool pair = spec.pattern == "pairs" && word(spec.options, "pairs", {"pub-sub", "pair"}) == "pair";
  bool routed = word(spec.options, "request_reply", {"req-rep", "dealer-router"}) == "dealer-router";
  switch (spec.role) {
    case Role::kRequester: return routed ? zmq::socket_type::dealer : zmq::socket_type::req;
    case Role::kReplier: return routed ? zmq::socket_type::router : zmq::socket_type::rep;
    case Role::kPublisher:
      return pair                         ? zmq::socket_type::pair
             : spec.pattern == "pipeline" ? zmq::socket_type::push
                                          : zmq::socket_type::pub;
    default:
      return pair                         ? zmq::socket_type::pair
             : spec.pattern == "pipeline" ? zmq::socket_type::pull
                                          : zmq::socket_type::sub;
  }
}

class ZeroMqSocket : public Socket {
 public:
  ZeroMqSocket(zmq::context_t& context, const Spec& spec)
      : socket_(context, zeromq_type(spec)), buffers_(word(spec.options, "idiom", {"message", "buffer"}) == "buffer"),
        routes_(zeromq_type(spec) == zmq::socket_type::router), asks_(zeromq_type(spec) == zmq::socket_type::req) {
    configure(spec);
    if (!spec.bind.empty()) {
      bool any_port = spec.bind.size() > 2 && spec.bind.compare(spec.bind.size() - 2, 2, ":0") == 0;
      attempt("bind " + spec.bind,
              [&] { socket_.bind(any_port ? spec.bind.substr(0, spec.bind.size() - 1) + "*" : spec.bind); });
      endpoint_ = socket_.get(zmq::sockopt::last_endpoint);
    }
    for (const auto& endpoint : spec.connect) {
      attempt("connect to " + endpoint, [&] { socket_.connect(endpoint); });
    }
    record(context, spec);
  }

  std::string endpoint() const override { return endpoint_; }

  bool send(const uint8_t* data, size_t size) override {
    if (routes_) return sent(peer_, zmq::send_flags::sndmore) && sent(zmq::message_t(data, size), {});
    if (!buffers_) return sent(zmq::message_t(data, size), zmq::send_flags::none);
    return quietly([&] { return socket_.send(zmq::buffer(data, size), zmq::send_flags::none).has_value(); });
  }

  View recv() override {
    if (routes_ && !received(peer_)) return {};
    if (!buffers_) return received(message_) ? View{message_.data<uint8_t>(), message_.size()} : View{};
    zmq::recv_buffer_result_t size;
    quietly([&] { return (size = socket_.recv(zmq::buffer(buffer_), zmq::recv_flags::none)).has_value(); });
    return size ? View{buffer_.data(), size->untruncated_size} : View{};
  }

  Json applied() const override { return applied_; }

  void crash() override {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.close();
  }

 private:
  static void attempt(const std::string& what, const std::function<void()>& action) {
    try {
      action();
    } catch (const zmq::error_t& error) { throw Failure("zeromq: cannot " + what + ": " + error.what()); }
  }
  // An interrupted call did nothing. A REQ socket whose late reply came in place of the next has none to wait for.
  template <class Call>
  bool quietly(Call call) {
    try {
      return call();
    } catch (const zmq::error_t& error) {
      if (error.num() == EINTR) return false;
      if (error.num() != EFSM || !asks_) throw;
      timespec pause{0, kWaitMs * 1'000'000};
      nanosleep(&pause, nullptr);
      return false;
    }
  }
  bool sent(zmq::message_t&& message, zmq::send_flags flags) { return sent(message, flags); }
  bool sent(zmq::message_t& message, zmq::send_flags flags) {
    return quietly([&] { return socket_.send(message, flags).has_value(); });
  }
  bool received(zmq::message_t& message) {
    return quietly([&] { return socket_.recv(message, zmq::recv_flags::none).has_value(); });
  }

  void configure(const Spec& spec) {
    auto whole = [](uint64_t value) { return static_cast<int>(std::min<uint64_t>(value, INT32_MAX)); };
    socket_.set(zmq::sockopt::sndhwm, whole(spec.queue()));
    socket_.set(zmq::sockopt::rcvhwm, whole(spec.queue()));
    socket_.set(zmq::sockopt::linger, whole(time_ns(spec.options.value("linger", "10s")) / 1'000'000));
    socket_.set(zmq::sockopt::sndtimeo, kWaitMs);
    socket_.set(zmq::sockopt::rcvtimeo, spec.receive_ms());
    socket_.set(zmq::sockopt::reconnect_ivl, 10);
    socket_.set(zmq::sockopt::maxmsgsize, int64_t{-1});
    uint64_t bytes = spec.number("socket_buffer", 0);
    if (bytes > 0 && spec.transport != "inproc") {
      socket_.set(zmq::sockopt::sndbuf, whole(bytes));
      socket_.set(zmq::sockopt::rcvbuf, whole(bytes));
    }
    if (zeromq_type(spec) == zmq::socket_type::sub) socket_.set(zmq::sockopt::subscribe, "");
    if (asks_) socket_.set(zmq::sockopt::req_relaxed, true);
    if (buffers_) buffer_.resize(spec.payload_bytes + 1);  // a message that is too long shows
  }
  // Reads back what took effect.
  void record(zmq::context_t& context, const Spec& spec) {
    applied_ = {{"linger", time_text(Ns{1'000'000} * socket_.get(zmq::sockopt::linger))},
                {"io_threads", context.get(zmq::ctxopt::io_threads)},
                {"send_queue_messages", socket_.get(zmq::sockopt::sndhwm)},
                {"receive_queue_messages", socket_.get(zmq::sockopt::rcvhwm)},
                {"idiom", buffers_ ? "buffer" : "message"}};
    if (spec.pattern == "request-reply") applied_["request_reply"] = spec.options.value("request_reply", "req-rep");
    if (spec.pattern == "pairs") applied_["pairs"] = spec.options.value("pairs", "pub-sub");
    if (spec.transport == "tcp") applied_["tcp_nodelay"] = true;
    if (spec.transport == "inproc") return;
    applied_["send_buffer_bytes"] = granted(socket_.get(zmq::sockopt::sndbuf), "wmem_max");
    applied_["receive_buffer_bytes"] = granted(socket_.get(zmq::sockopt::rcvbuf), "rmem_max");
  }
  // What the kernel makes of a buffer that is asked for.
  static Json granted(int asked, const char* limit) {
    int most = INT32_MAX;
    std::ifstream(std::string("/proc/sys/net/core/") + limit) >> most;
    return asked > 0 ? Json(std::min(asked, most)) : Json("automatic");
  }

  zmq::socket_t socket_;
  bool buffers_, routes_, asks_;
  zmq::message_t message_, peer_;
  std::vector<uint8_t> buffer_;
  std::string endpoint_;
  Json applied_;
};

class ZeroMqDriver : public Driver {
 public:
  explicit ZeroMqDriver(const Json& options) {
    if (!options.value("tcp_nodelay", true)) {
      throw Failure("zeromq: TCP_NODELAY is always on and libzmq cannot turn it off: leave tcp_nodelay at true");
    }
    if (options.contains("library")) preload(options["library"]);
    int io_threads = options.value("io_threads", 1);
    if (io_threads < 1) throw Failure("zeromq: io_threads is 0, which leaves no thread to move messages");
    context_.set(zmq::ctxopt::io_threads, io_threads);
    context_.set(zmq::ctxopt::max_sockets, 16'383);
  }
  std::unique_ptr<Socket> open(const Spec& spec) override {
    if (spec.transport != "inproc" && spec.transport != "ipc" && spec.transport != "tcp") {
      throw Failure("zeromq has no transport " + spec.transport + ": use inproc, ipc or tcp");
    }
    auto bare = [this](const Spec& one) { return std::make_unique<ZeroMqSocket>(context_, one); };
    auto written = [&](const Spec& one) { return Serialized::open(one, bare); };
    return Batched::open(spec, [&](const Spec& one) { return TwoWays::open(one, written); });
  }
  Json versions() const override {
    return {{"library", "libzmq"},
            {"version", version()},
            {"path", path()},
            {"binding", binding()},
            {"runtime", "g++ " __VERSION__}};
  }
  Json made() const override {
    return {{"binding", binding()},
            {"library", "libzmq " + version()},
            {"copies", "message: one on send, none on receive; buffer: one each way"}};
  }
  static std::string binding() {
    return "cppzmq " + std::to_string(CPPZMQ_VERSION_MAJOR) + "." + std::to_string(CPPZMQ_VERSION_MINOR) + "." +
           std::to_string(CPPZMQ_VERSION_PATCH);
  }

 private:
  static std::string version() {
    auto [major, minor, patch] = zmq::version();
    return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
  }
  static std::string path() {
    Dl_info found{};
    dladdr(dlsym(RTLD_DEFAULT, "zmq_version"), &found);
    std::error_code ignored;
    return std::filesystem::canonical(found.dli_fname ? found.dli_fname : "", ignored);
  }
  // The functions of another libzmq take the place of the one that is linked if the loader knows it from the
  // beginning on: the program starts again.
  static void preload(const std::string& library) {
    const char* before = std::getenv("LD_PRELOAD");
    if (!before || before != library) throw Restart{"LD_PRELOAD", library};
    std::error_code ignored;
    bool by_path = library.find('/') != std::string::npos;
    bool loaded = by_path ? std::filesystem::equivalent(library, path(), ignored)
                          : path().find(library.substr(0, library.find(".so"))) != std::string::npos;
    if (!loaded) throw Failure("the option library names " + library + ", which is no libzmq that can be loaded here");
  }

  zmq::context_t context_;
};

}  // namespace pubmark
