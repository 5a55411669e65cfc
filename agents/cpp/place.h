// Where the clients of a library over UDP are.
#pragma once

#include <arpa/inet.h>
#include <unistd.h>

#include <string>

#include "driver.h"

namespace pubmark {

// The address in `udp://ADDRESS:PORT`, or in `udp://ADDRESS`; the loopback's where there is none.
inline std::string address_in(const std::string& endpoint) {
  std::string address = endpoint.substr(0, 6) == "udp://" ? endpoint.substr(6) : "";
  address = address.substr(0, address.find(':'));
  return address.empty() ? "127.0.0.1" : address;
}

inline bool is_loopback(const std::string& address) { return address.substr(0, 4) == "127."; }

inline sockaddr_in socket_address(const std::string& address, uint16_t port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  if (inet_pton(AF_INET, address.c_str(), &at.sin_addr) != 1) throw Failure(address + " is no IPv4 address");
  return at;
}

// This machine's own address on the way to another: the kernel knows, and nothing is sent.
inline std::string own_address_towards(const std::string& address) {
  sockaddr_in at = socket_address(address, 9);
  socklen_t size = sizeof at;
  auto* any = reinterpret_cast<sockaddr*>(&at);
  int probe = ::socket(AF_INET, SOCK_DGRAM, 0);
  bool found = ::connect(probe, any, size) == 0 && getsockname(probe, any, &size) == 0;
  close(probe);
  if (!found) throw Failure("there is no way to " + address);
  char text[INET_ADDRSTRLEN] = "";
  inet_ntop(AF_INET, &at.sin_addr, text, sizeof text);
  return text;
}

// A UDP port of this address: `wanted`, if it is free, or any where that is 0; 0 where there is none.
inline uint16_t free_udp_port(const std::string& address, uint16_t wanted = 0) {
  sockaddr_in at = socket_address(address, wanted);
  socklen_t size = sizeof at;
  auto* any = reinterpret_cast<sockaddr*>(&at);
  int probe = ::socket(AF_INET, SOCK_DGRAM, 0);
  bool found = ::bind(probe, any, size) == 0 && getsockname(probe, any, &size) == 0;
  close(probe);
  return found ? ntohs(at.sin_port) : 0;
}

}  // namespace pubmark
