// The topics of a library that has topics.
#pragma once

#include "driver.h"

namespace pubmark {

// What a client writes to and what it reads; empty: neither.
struct Topics {
  std::string out, in;
};

// A pair of request-reply has a topic for requests and one for replies, as in DDS-RPC.
inline Topics topics(const Spec& spec) {
  bool asks = spec.pattern == "request-reply";
  std::string messages = asks || spec.pattern == "pairs" ? std::to_string(spec.id) : "all";
  std::string answers = asks ? messages + "_Reply" : spec.both_ways() ? "answers" : "";
  if (asks) messages += "_Request";
  return spec.sends() ? Topics{messages, answers} : Topics{answers, messages};
}

}  // namespace pubmark
