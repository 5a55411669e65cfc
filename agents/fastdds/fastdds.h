// Fast DDS: a participant for each process of publishers, topics for each pair or for all.
#pragma once

#include <dlfcn.h>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>
#include <fastdds/rtps/transport/shared_mem/SharedMemTransportDescriptor.h>
#include <fastrtps/utils/IPLocator.h>

#include <cstring>
#include <fastdds/dds/core/condition/WaitSet.hpp>
#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/Topic.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <fastdds/rtps/flowcontrol/FlowControllerDescriptor.hpp>
#include <filesystem>
#include <fstream>
#include <set>

#include "../cpp/batch.h"
#include "../cpp/place.h"
#include "../cpp/serialization.h"
#include "../cpp/topics.h"
#include "leftovers.h"

namespace pubmark {

namespace dds = eprosima::fastdds::dds;
namespace rtps = eprosima::fastdds::rtps;
using eprosima::fastrtps::Duration_t;
using eprosima::fastrtps::rtps::IPLocator;
using eprosima::fastrtps::rtps::Locator_t;
using eprosima::fastrtps::types::ReturnCode_t;

// A message: where it is sent, bytes of somebody's; where it is received, what came.
struct Message {
  const uint8_t* data;
  size_t size;
  std::vector<uint8_t> own;
  Serialization* serialization;  // none: as bytes
  View come{};
};

// `sequence<octet>` of CDR, little-endian, by hand; or by Fast CDR, that or a structured type.
class MessageType : public dds::TopicDataType {
 public:
  explicit MessageType(size_t payload) {
    m_typeSize = payload + kMost;
    m_isGetKeyDefined = false;
    setName("pubmark::Message");
    auto_fill_type_object(false);
    auto_fill_type_information(false);
  }
  bool serialize(void* from, eprosima::fastrtps::rtps::SerializedPayload_t* to) override {
    const auto& message = *static_cast<Message*>(from);
    if (message.serialization) {
      to->length = message.serialization->write(message.data, message.size, to->data, to->max_size);
      to->encapsulation = CDR_LE;
      return true;
    }
    if (message.size + kFront > to->max_size) return false;
    uint32_t size = message.size;
    std::memcpy(to->data, "\0\1\0\0", 4);
    std::memcpy(to->data + 4, &size, 4);
    std::memcpy(to->data + kFront, message.data, size);
    to->encapsulation = CDR_LE;
    to->length = size + kFront;
    return true;
  }
  bool deserialize(eprosima::fastrtps::rtps::SerializedPayload_t* from, void* to) override {
    auto& message = *static_cast<Message*>(to);
    if (message.serialization) {
      message.come = message.serialization->read(from->data, from->length);
      return true;
    }
    if (from->length < kFront) return false;
    uint32_t size;  // what comes is filled up to a multiple of four bytes
    std::memcpy(&size, from->data + 4, 4);
    message.size = std::min<size_t>({size, from->length - kFront, message.own.size()});
    std::memcpy(message.own.data(), from->data + kFront, message.size);
    message.come = {message.own.data(), message.size};
    return true;
  }
  std::function<uint32_t()> getSerializedSizeProvider(void* of) override {
    return [of] { return static_cast<uint32_t>(static_cast<Message*>(of)->size + kMost); };
  }
  void* createData() override { return new Message{nullptr, 0, std::vector<uint8_t>(m_typeSize), nullptr}; }
  void deleteData(void* data) override { delete static_cast<Message*>(data); }
  bool getKey(void*, eprosima::fastrtps::rtps::InstanceHandle_t*, bool) override { return false; }
  bool is_bounded() const override { return true; }  // data sharing asks for it

 private:
  static constexpr size_t kFront = 8;  // encapsulation, and the length
  static constexpr size_t kMost = 12;  // the same with two lengths
};

template <class T>
T* made(T* thing, const std::string& what) {
  if (!thing) throw Failure("fastdds: cannot make " + what + ": its log on standard error may say why");
  return thing;
}
inline void check(ReturnCode_t code, const char* what) {
  if (!(code == ReturnCode_t::RETCODE_OK)) {
    throw Failure(std::string("fastdds: cannot ") + what + ": return code " + std::to_string(code()));
  }
}
inline Duration_t duration(Ns ns) { return Duration_t(static_cast<long double>(ns) / 1e9L); }

// How often a writer whose flow is controlled may send so many bytes.
inline uint64_t flow_period_ms(const Spec& spec) {
  Ns period = time_ns(spec.options.value("flow_period", "100ms"));
  if (period == 0 || period % 1'000'000 != 0)
    throw Failure("flow_period is in whole milliseconds, of which 1 is the least");
  return period / 1'000'000;
}
inline int32_t flow_bytes(const Spec& spec) {
  uint64_t bytes = spec.number("flow_bytes_per_period", 0);
  if (bytes > INT32_MAX) throw Failure("flow_bytes_per_period is 2147483647 at most");
  return static_cast<int32_t>(bytes);
}
// Whether a thread of the library sends: what is written and may not be sent yet has to wait for one.
inline bool asynchronous(const Spec& spec) {
  return word(spec.options, "publish_mode", {"sync", "async"}) == "async" || flow_bytes(spec) > 0;
}

inline Json settings(const Spec& spec) {
  uint64_t depth = spec.number("history_depth", 0), buffer = spec.number("socket_buffer", 0);
  Json applied{{"reliability", word(spec.options, "reliability", {"reliable", "best-effort"})},
               {"publish_mode", asynchronous(spec) ? "async" : "sync"},
               {"history_depth", depth > 0 ? Json(depth) : Json("all")},
               {"queue_messages", depth > 0 ? depth : spec.queue()},
               {"heartbeat", time_text(time_ns(spec.options.value("heartbeat", "100ms")))},
               {"data_sharing", spec.options.value("data_sharing", false)},
               {"multicast", spec.options.value("multicast", false)},
               {"socket_buffer_bytes", buffer > 0 ? Json(buffer) : Json("automatic")}};
  if (uint64_t bytes = spec.number("flow_bytes_per_period", 0)) {
    applied.update({{"flow_bytes_per_period", bytes}, {"flow_period", time_text(flow_period_ms(spec) * 1'000'000)}});
  }
  if (spec.options.value("multicast", false) && spec.transport == "ipc") throw Failure("multicast goes with udp alone");
  return applied;
}

// What reliability, history and room are, for writers and readers alike.
template <class Qos>
void describe(Qos& qos, const Spec& spec) {
  uint64_t depth = spec.number("history_depth", 0);
  int32_t room = depth > 0 ? depth : spec.queue();
  qos.reliability().kind = word(spec.options, "reliability", {"reliable", "best-effort"}) == "reliable"
                               ? dds::RELIABLE_RELIABILITY_QOS
                               : dds::BEST_EFFORT_RELIABILITY_QOS;
  qos.reliability().max_blocking_time = duration(kWaitMs * 1'000'000);
  qos.durability().kind = dds::VOLATILE_DURABILITY_QOS;
  qos.history().kind = depth > 0 ? dds::KEEP_LAST_HISTORY_QOS : dds::KEEP_ALL_HISTORY_QOS;
  qos.history().depth = room;
  qos.resource_limits().max_samples = room;
  qos.resource_limits().max_instances = 1;
  qos.resource_limits().max_samples_per_instance = room;
  qos.resource_limits().allocated_samples = std::min(room, 100);
  qos.endpoint().history_memory_policy = eprosima::fastrtps::rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
  if (spec.options.value("data_sharing", false)) {
    qos.data_sharing().automatic();
  } else {
    qos.data_sharing().off();
  }
}

// What says how many bytes the writers of a participant may send in a period.
constexpr const char* kFlow = "pubmark";

// A participant that knows one other process at most: where publishers or repliers wait, or where they are to be found.
class Room {
 public:
  // `key` is the port (udp) or the domain (ipc) of those who wait, `at_address` where they are.
  Room(const Spec& spec, const std::string& at_address, uint16_t key, bool binds)
      : key_(key), own_(binds ? at_address : own_address_towards(at_address)),
        name_("pubmark/" + std::to_string(key) + "/") {
    dds::DomainParticipantQos qos;
    qos.transport().use_builtin_transports = false;
    auto& builtin = qos.wire_protocol().builtin;
    builtin.discovery_config.initial_announcements.count = 50;
    builtin.discovery_config.initial_announcements.period = duration(20'000'000);
    if (spec.transport == "udp") {
      auto udp = std::make_shared<rtps::UDPv4TransportDescriptor>();
      udp->interfaceWhiteList = {own_};
      udp->sendBufferSize = udp->receiveBufferSize = spec.number("socket_buffer", 0);
      qos.transport().user_transports.push_back(udp);
      builtin.metatrafficUnicastLocatorList.push_back(at(own_, binds ? key : free_port(own_)));
      qos.wire_protocol().default_unicast_locator_list.push_back(at(own_, free_port(own_)));
      if (!binds) builtin.initialPeersList.push_back(at(at_address, key));
    } else {
      auto memory = std::make_shared<rtps::SharedMemTransportDescriptor>();
      uint64_t wanted = spec.queue() * (spec.payload_bytes + 256);
      memory->segment_size(std::clamp<uint64_t>(wanted, 1 << 20, 64 << 20));
      memory->port_queue_capacity(1024);
      qos.transport().user_transports.push_back(memory);
    }
    if (int32_t bytes = flow_bytes(spec); bytes > 0) {
      auto flow = std::make_shared<rtps::FlowControllerDescriptor>();
      flow->name = kFlow, flow->max_bytes_per_period = bytes, flow->period_ms = flow_period_ms(spec);
      qos.flow_controllers().push_back(flow);
    }
    auto* factory = dds::DomainParticipantFactory::get_instance();
    participant_ = made(factory->create_participant(domain(spec, key), qos), "a participant");
    type_ = dds::TypeSupport(new MessageType(spec.payload_bytes));
    check(type_.register_type(participant_), "register a type");
  }
  ~Room() {
    participant_->delete_contained_entities();
    dds::DomainParticipantFactory::get_instance()->delete_participant(participant_);
  }

  dds::DataWriter* writer(const Spec& spec, const std::string& topic) {
    dds::DataWriterQos qos;
    describe(qos, spec);
    qos.reliable_writer_qos().times.heartbeatPeriod = duration(time_ns(spec.options.value("heartbeat", "100ms")));
    qos.publish_mode().kind = asynchronous(spec) ? dds::ASYNCHRONOUS_PUBLISH_MODE : dds::SYNCHRONOUS_PUBLISH_MODE;
    if (flow_bytes(spec) > 0 && spec.sends()) qos.publish_mode().flow_controller_name = kFlow;
    auto* publisher = made(participant_->create_publisher(dds::PUBLISHER_QOS_DEFAULT), "a publisher");
    return made(publisher->create_datawriter(known(topic), qos), "a writer");
  }
  dds::DataReader* reader(const Spec& spec, const std::string& topic) {
    dds::DataReaderQos qos;
    describe(qos, spec);
    if (spec.options.value("multicast", false) && !spec.sends()) {  // answers go to one
      Locator_t group = at(own_, 20'000 + key_ % 10'000);
      IPLocator::setIPv4(group, 239, 255, key_ >> 8, key_ & 255);
      qos.endpoint().multicast_locator_list.push_back(group);
    }
    auto* subscriber = made(participant_->create_subscriber(dds::SUBSCRIBER_QOS_DEFAULT), "a subscriber");
    return made(subscriber->create_datareader(known(topic), qos), "a reader");
  }
  uint16_t key() const { return key_; }

  // A port, or a domain, that nobody uses.
  static uint16_t free_key(const Spec& spec) {
    if (spec.transport == "udp") return free_port(address_in(spec.bind));
    for (uint16_t domain = getpid() % 200;; domain = (domain + 1) % 200) {
      if (!std::filesystem::exists("/dev/shm/fastrtps_port" + std::to_string(first_port(domain)))) return domain;
    }
  }
  static uint32_t domain(const Spec& spec, uint16_t key) { return spec.transport == "udp" ? key % 200 : key; }
  static uint32_t first_port(uint16_t domain) { return 7400 + 250u * domain; }

 private:
  static Locator_t at(const std::string& address, uint16_t port) {
    Locator_t locator;
    IPLocator::setIPv4(locator, address);
    locator.port = port;
    return locator;
  }
  static uint16_t free_port(const std::string& address) {
    if (uint16_t port = free_udp_port(address)) return port;
    throw Failure("fastdds: no free port at " + address);
  }
  dds::Topic* known(const std::string& topic) {
    std::string name = name_ + topic;
    if (auto* known = dynamic_cast<dds::Topic*>(participant_->lookup_topicdescription(name))) return known;
    return made(participant_->create_topic(name, type_.get_type_name(), dds::TOPIC_QOS_DEFAULT), "a topic");
  }

  uint16_t key_;
  std::string own_, name_;
  dds::DomainParticipant* participant_;
  dds::TypeSupport type_;
};

class FastDdsSocket : public Socket {
 public:
  FastDdsSocket(const Spec& spec, const std::vector<Room*>& rooms)
      : wait_(duration(spec.receive_ms() * 1'000'000)), applied_(settings(spec)),
        serialization_(spec), message_{nullptr, 0, std::vector<uint8_t>(spec.payload_bytes + 1),
                                       serialization_.on() ? &serialization_ : nullptr} {
    applied_.update(serialization_.applied());
    if (!spec.bind.empty()) {
      endpoint_ = spec.transport == "udp" ? "udp://" + address_in(spec.bind) : spec.bind;
      endpoint_ += ":" + std::to_string(rooms.front()->key());
    }
    auto [out, in] = topics(spec);
    if (!out.empty()) writer_ = rooms.front()->writer(spec, out);
    for (Room* room : rooms) {
      if (!in.empty()) readers_.push_back(room->reader(spec, in));
    }
    for (auto* reader : readers_) {
      auto& condition = reader->get_statuscondition();
      condition.set_enabled_statuses(dds::StatusMask::data_available());
      arrivals_.attach_condition(condition);
    }
  }
  std::string endpoint() const override { return endpoint_; }

  bool send(const uint8_t* data, size_t size) override {
    message_.data = data, message_.size = size;
    ReturnCode_t code = writer_->write(&message_, dds::HANDLE_NIL);
    if (code == ReturnCode_t::RETCODE_OK) return true;
    if (!(code == ReturnCode_t::RETCODE_TIMEOUT || code == ReturnCode_t::RETCODE_OUT_OF_RESOURCES)) {
      check(code, "write");
    }
    return false;
  }
  View recv() override {
    if (View taken = take()) return taken;
    if (readers_.size() == 1) {
      readers_.front()->wait_for_unread_message(wait_);
    } else {
      dds::ConditionSeq active;
      arrivals_.wait(active, wait_);
    }
    return take();
  }
  bool loses_requests() const override { return true; }
  Json applied() const override { return applied_; }
  void crash() override {}

 private:
  View take() {
    for (auto* reader : readers_) {
      dds::SampleInfo info;
      while (reader->take_next_sample(&message_, &info) == ReturnCode_t::RETCODE_OK) {
        if (info.valid_data) return message_.come;
      }
    }
    return {};
  }

  dds::DataWriter* writer_ = nullptr;
  std::vector<dds::DataReader*> readers_;
  dds::WaitSet arrivals_;
  Duration_t wait_;
  std::string endpoint_;
  Json applied_;
  Serialization serialization_;
  Message message_;
};

class FastDdsDriver : public Driver {
 public:
  FastDdsDriver() { remove_leftovers(); }
  std::unique_ptr<Socket> open(const Spec& spec) override {
    if (spec.transport != "udp" && spec.transport != "ipc") {
      throw Failure("fastdds has no transport " + spec.transport + " here: use udp or ipc");
    }
    return Batched::open(spec, [this](const Spec& one) { return open_one(one); });
  }
  Json versions() const override {
    return {{"library", "Fast DDS"}, {"version", version()}, {"path", path()}, {"runtime", "g++ " __VERSION__}};
  }
  Json made() const override {
    return {{"binding", "none: the library is C++"},
            {"library", "Fast DDS " + version()},
            {"copies", "into the writer's history and from the reader's, and the transport's own"}};
  }
  void leave(bool in_order) override {
    auto files = shared_files("self");
    if (in_order) rooms_.clear();
    std::error_code ignored;
    for (const auto& file : files) {
      for (const char* more : {"", "_el", "_sl"}) std::filesystem::remove(file + more, ignored);
      std::filesystem::remove("/dev/shm/sem." + file.substr(9) + "_mutex", ignored);
    }
  }
  static std::string version() {
    std::string name = path();
    return name.substr(name.find(".so.") + 4);
  }

 private:
  std::unique_ptr<Socket> open_one(const Spec& spec) {
    std::vector<Room*> rooms;
    if (!spec.bind.empty()) {
      if (rooms_.empty()) enter(spec, address_in(spec.bind), Room::free_key(spec), true);
      rooms.push_back(rooms_.begin()->second.get());
    }
    std::set<Room*> entered;
    for (const auto& endpoint : spec.connect) {
      uint16_t key = std::stoul(endpoint.substr(endpoint.rfind(':') + 1));
      Room* room = enter(spec, address_in(endpoint), key, false);
      if (entered.insert(room).second) rooms.push_back(room);
    }
    return std::make_unique<FastDdsSocket>(spec, rooms);
  }
  Room* enter(const Spec& spec, const std::string& address, uint16_t key, bool binds) {
    auto& room = rooms_[{address, key}];
    if (!room) room = std::make_unique<Room>(spec, address, key, binds);
    return room.get();
  }
  static std::string path() {
    Dl_info found{};
    auto function = &dds::DomainParticipantFactory::get_instance;
    dladdr(reinterpret_cast<void*>(function), &found);
    std::error_code ignored;
    return std::filesystem::canonical(found.dli_fname ? found.dli_fname : "", ignored);
  }
  std::map<std::pair<std::string, uint16_t>, std::unique_ptr<Room>> rooms_;
};

}  // namespace pubmark
