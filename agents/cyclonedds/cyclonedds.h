// Cyclone DDS: a domain of the run's own in each process, topics for each pair or for all.
#pragma once

#include <dds/dds.h>
#include <dds/version.h>
#include <dlfcn.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "../cpp/place.h"
#include "../cpp/topics.h"

namespace pubmark {

// `struct Message { sequence<octet> bytes; }`, as its IDL compiler would describe it.
struct Message {
  dds_sequence_t bytes;
};
inline const uint32_t kMessageOps[] = {DDS_OP_ADR | DDS_OP_TYPE_SEQ | DDS_OP_SUBTYPE_1BY, offsetof(Message, bytes),
                                       DDS_OP_RTS};
inline const dds_topic_descriptor_t kMessage{
    sizeof(Message), alignof(Message), 0, 0, "pubmark::Message", nullptr, 2, kMessageOps, "", {}, {}, 0};

inline dds_entity_t made(dds_return_t entity, const std::string& what) {
  if (entity > 0) return entity;
  throw Failure("cyclonedds: cannot make " + what + ": " + dds_strretcode(entity));
}

inline Json settings(const Spec& spec) {
  uint64_t depth = spec.number("history_depth", 0), buffer = spec.number("socket_buffer", 0);
  return {{"reliability", word(spec.options, "reliability", {"reliable", "best-effort"})},
          {"publish_mode", "sync"},
          {"history_depth", depth > 0 ? Json(depth) : Json("all")},
          {"queue_messages", depth > 0 ? depth : spec.queue()},
          {"heartbeat", time_text(time_ns(spec.options.value("heartbeat", "100ms")))},
          {"multicast", spec.options.value("multicast", false)},
          {"socket_buffer_bytes", buffer > 0 ? Json(buffer) : Json("automatic")}};
}

// A participant that knows one other process at most: where publishers or repliers wait, or where they are to be found.
class Room {
 public:
  Room(const Spec& spec, const std::string& at_address, uint16_t port, bool binds)
      : port_(port), name_("pubmark/" + std::to_string(port) + "/"), domain_(port % 200) {
    auto text = [](uint64_t number) { return std::to_string(number); };
    bool multicast = spec.options.value("multicast", false);
    std::string group = "239.255." + text(port >> 8) + "." + text(port & 255), lo = multicast ? "true" : "false";
    uint64_t buffer = spec.number("socket_buffer", 0), queue = std::max(spec.queue() * spec.payload_bytes, 65536ul);
    Ns heartbeat = time_ns(spec.options.value("heartbeat", "100ms"));
    std::string own = binds ? at_address : own_address_towards(at_address);
    std::string interface = is_loopback(own) ? "name='lo'" : "address='" + own + "'";
    std::string config =
        "<General><Interfaces><NetworkInterface " + interface + " multicast='" + lo +
        "'/></Interfaces><AllowMulticast>" + (multicast ? "asm" : "false") +
        "</AllowMulticast></General><Discovery><Tag>" + name_ + "</Tag><DefaultMulticastAddress>" + group +
        "</DefaultMulticastAddress><ParticipantIndex>" + (binds ? "0" : "none") + "</ParticipantIndex><Ports><Base>" +
        text(port) + "</Base><DomainGain>0</DomainGain><UnicastMetaOffset>0</UnicastMetaOffset><UnicastDataOffset>1" +
        "</UnicastDataOffset><MulticastMetaOffset>2</MulticastMetaOffset><MulticastDataOffset>3" +
        "</MulticastDataOffset></Ports>" +
        (binds ? "" : "<Peers><Peer Address='" + at_address + ":" + text(port) + "'/></Peers>") +
        "<SPDPInterval>100ms</SPDPInterval></Discovery><Internal><HeartbeatInterval>" + text(heartbeat) +
        "ns</HeartbeatInterval><Watermarks><WhcHigh>" + text(queue) + "B</WhcHigh></Watermarks>" +
        (buffer == 0 ? ""
                     : "<SocketReceiveBufferSize min='" + text(buffer) + "B'/><SocketSendBufferSize min='" +
                           text(buffer) + "B'/>") +
        "</Internal>";
    entity_ = made(dds_create_domain(domain_, config.c_str()), "a domain of " + config);
    participant_ = made(dds_create_participant(domain_, nullptr, nullptr), "a participant");
  }
  ~Room() { dds_delete(entity_); }

  dds_entity_t writer(const Spec& spec, const std::string& topic) {
    return made(dds_create_writer(participant_, known(spec, topic), quality(spec).get(), nullptr), "a writer");
  }
  dds_entity_t reader(const Spec& spec, const std::string& topic) {
    return made(dds_create_reader(participant_, known(spec, topic), quality(spec).get(), nullptr), "a reader");
  }
  dds_entity_t participant() const { return participant_; }
  uint16_t port() const { return port_; }

  // The first of two ports that nobody uses.
  static uint16_t free_port(const std::string& address) {
    for (uint16_t tried = 0; tried < 1000; tried++) {
      uint16_t port = 10'000 + (getpid() * 16 + tried * 4) % 20'000;
      if (free_udp_port(address, port) && free_udp_port(address, port + 1)) return port;
    }
    throw Failure("cyclonedds: no free ports at " + address);
  }

 private:
  static std::unique_ptr<dds_qos_t, void (*)(dds_qos_t*)> quality(const Spec& spec) {
    std::unique_ptr<dds_qos_t, void (*)(dds_qos_t*)> qos(dds_create_qos(), dds_delete_qos);
    bool reliable = word(spec.options, "reliability", {"reliable", "best-effort"}) == "reliable";
    uint64_t depth = spec.number("history_depth", 0);
    int32_t room = depth > 0 ? depth : spec.queue();
    dds_qset_reliability(qos.get(), reliable ? DDS_RELIABILITY_RELIABLE : DDS_RELIABILITY_BEST_EFFORT,
                         DDS_MSECS(kWaitMs));
    dds_qset_history(qos.get(), depth > 0 ? DDS_HISTORY_KEEP_LAST : DDS_HISTORY_KEEP_ALL, room);
    dds_qset_resource_limits(qos.get(), room, 1, room);
    return qos;
  }
  dds_entity_t known(const Spec& spec, const std::string& of_run) {
    std::string name = name_ + of_run;
    dds_entity_t& topic = topics_[name];
    if (topic == 0) {
      topic = made(dds_create_topic(participant_, &kMessage, name.c_str(), quality(spec).get(), nullptr), "a topic");
    }
    return topic;
  }

  uint16_t port_;
  std::string name_;
  dds_domainid_t domain_;
  dds_entity_t entity_, participant_;
  std::map<std::string, dds_entity_t> topics_;
};

class CycloneSocket : public Socket {
 public:
  CycloneSocket(const Spec& spec, const std::vector<Room*>& rooms)
      : arrivals_(made(dds_create_waitset(DDS_CYCLONEDDS_HANDLE), "a waitset")), wait_(DDS_MSECS(spec.receive_ms())),
        applied_(settings(spec)) {
    if (!spec.bind.empty()) {
      endpoint_ = "udp://" + address_in(spec.bind) + ":" + std::to_string(rooms.front()->port());
    }
    auto [out, in] = topics(spec);
    if (!out.empty()) writer_ = rooms.front()->writer(spec, out);
    for (Room* room : rooms) {
      if (!in.empty()) listen(room->reader(spec, in));
    }
  }
  std::string endpoint() const override { return endpoint_; }

  bool send(const uint8_t* data, size_t size) override {
    uint32_t bytes = size;
    Message message{{bytes, bytes, const_cast<uint8_t*>(data), false}};
    dds_return_t code = dds_write(writer_, &message);
    if (code != DDS_RETCODE_OK && code != DDS_RETCODE_TIMEOUT) {
      throw Failure(std::string("cyclonedds: cannot write: ") + dds_strretcode(code));
    }
    return code == DDS_RETCODE_OK;
  }
  View recv() override {
    if (View taken = take()) return taken;
    dds_attach_t which;
    dds_waitset_wait(arrivals_, &which, 1, wait_);
    return take();
  }
  bool loses_requests() const override { return true; }
  Json applied() const override { return applied_; }
  void crash() override {}

 private:
  void listen(dds_entity_t reader) {
    readers_.push_back(reader);
    dds_set_status_mask(reader, DDS_DATA_AVAILABLE_STATUS);
    dds_waitset_attach(arrivals_, reader, readers_.size());
  }
  View take() {
    for (dds_entity_t reader : readers_) {
      void* message = &message_;
      dds_sample_info_t info;
      while (dds_take(reader, &message, &info, 1, 1) > 0) {
        if (info.valid_data) return {message_.bytes._buffer, message_.bytes._length};
      }
    }
    return {};
  }

  dds_entity_t writer_ = 0, arrivals_;
  std::vector<dds_entity_t> readers_;
  dds_duration_t wait_;
  std::string endpoint_;
  Json applied_;
  Message message_{};
};

class CycloneDriver : public Driver {
 public:
  std::unique_ptr<Socket> open(const Spec& spec) override {
    if (spec.transport != "udp") throw Failure("cyclonedds has no transport " + spec.transport + " here: use udp");
    std::vector<Room*> rooms;
    if (!spec.bind.empty()) {
      if (rooms_.empty()) enter(spec, address_in(spec.bind), Room::free_port(address_in(spec.bind)), true);
      rooms.push_back(rooms_.begin()->second.get());
    }
    std::set<Room*> entered;
    for (const auto& endpoint : spec.connect) {
      uint16_t port = std::stoul(endpoint.substr(endpoint.rfind(':') + 1));
      Room* room = enter(spec, address_in(endpoint), port, false);
      if (entered.insert(room).second) rooms.push_back(room);
    }
    return std::make_unique<CycloneSocket>(spec, rooms);
  }
  Json versions() const override {
    Dl_info found{};
    dladdr(dlsym(RTLD_DEFAULT, "dds_create_participant"), &found);
    std::error_code ignored;
    auto path = std::filesystem::canonical(found.dli_fname ? found.dli_fname : "", ignored);
    return {{"library", "Cyclone DDS"}, {"version", DDS_VERSION}, {"path", path}, {"runtime", "g++ " __VERSION__}};
  }
  Json made() const override {
    return {{"binding", "none: the library's own C"},
            {"library", "Cyclone DDS " DDS_VERSION},
            {"copies", "into the writer's history, from the reader's, and the kernel's"}};
  }
  void leave(bool in_order) override {
    if (in_order) rooms_.clear();
  }

 private:
  Room* enter(const Spec& spec, const std::string& address, uint16_t port, bool binds) {
    auto& room = rooms_[{address, port}];
    if (!room) room = std::make_unique<Room>(spec, address, port, binds);
    return room.get();
  }
  std::map<std::pair<std::string, uint16_t>, std::unique_ptr<Room>> rooms_;
};

}  // namespace pubmark
