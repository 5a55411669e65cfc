package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// kind is the type of a socket, by the names of ZeroMQ.
type kind string

// order is a socket to open.
type order struct {
	kind    kind
	work    *workload
	options options
	bind    string
	connect []string
}

// socket is what a client plays with. One goroutine uses it, but for interrupt.
type socket interface {
	// endpoint is where others connect to, if it was bound.
	endpoint() string
	// send offers a message; false: refused for now, offer it again. The message is the caller's again afterwards.
	send(message []byte) (bool, error)
	// receive waits for a message; none: nothing came in time, or it was interrupted.
	receive() ([]byte, error)
	// interrupt ends a wait that has no end of its own.
	interrupt()
	// crash closes it and throws away what is queued.
	crash()
}

// binding is a way to ZeroMQ, or none.
type binding struct {
	drivers    []string
	known      map[string][]string // options, by driver
	transports []string
	patterns   []string
	idiom      string // where none is asked for
	open       func(order) (socket, error)
	applied    func(order, socket) map[string]any
	versions   func() map[string]string
	made       map[string]string
}

var (
	bindings    = map[string]*binding{}
	allPatterns = []string{"pairs", "fan-out", "fan-in", "request-reply", "pipeline"}
)

// kindOf is the type of socket of a client.
func kindOf(role string, w *workload, o options) kind {
	sends := role == "publisher" || role == "requester"
	choose := func(sender, receiver kind) kind {
		if sends {
			return sender
		}
		return receiver
	}
	switch {
	case w.Pattern == "request-reply" && o.text("request_reply", "req-rep") == "dealer-router":
		return choose("DEALER", "ROUTER")
	case w.Pattern == "request-reply":
		return choose("REQ", "REP")
	case w.Pattern == "pipeline":
		return choose("PUSH", "PULL")
	case w.Pattern == "pairs" && o.text("pairs", "pub-sub") == "pair":
		return "PAIR"
	}
	return choose("PUB", "SUB")
}

// check refuses values that cannot be honoured.
func (b *binding) check(driver string, w *workload, o options) error {
	for name := range o {
		if !slices.Contains(b.known[driver], name) {
			return fmt.Errorf("the driver %s knows no option %s: it has %s", driver, name, strings.Join(b.known[driver], ", "))
		}
	}
	words := map[string][]string{"request_reply": {"req-rep", "dealer-router"}, "pairs": {"pub-sub", "pair"}, "idiom": {"bytes", "message"}}
	for name, known := range words {
		if value := o.text(name, known[0]); !slices.Contains(known, value) {
			return fmt.Errorf("the option %s is %q: it can be %s", name, value, strings.Join(known, " or "))
		}
	}
	if o.text("pairs", "") == "pair" && w.Pattern != "pairs" {
		return fmt.Errorf("the option pairs is \"pair\", and the pattern %s: a PAIR socket has one peer", w.Pattern)
	}
	if string(o["tcp_nodelay"]) == "false" {
		return fmt.Errorf("the option tcp_nodelay is false: this binding cannot turn TCP_NODELAY off")
	}
	if o.number("io_threads", 1) < 1 {
		return fmt.Errorf("the option io_threads is 0, which leaves no thread to move messages")
	}
	if _, err := time.ParseDuration(o.text("linger", "0s")); err != nil {
		return fmt.Errorf("the option linger is %q: it takes a time with its unit", o.text("linger", ""))
	}
	if !slices.Contains(b.patterns, w.Pattern) || driver == "null" && w.Transport != "inproc" {
		return fmt.Errorf("the driver %s has no pattern %s over %s", driver, w.Pattern, w.Transport)
	}
	return nil
}

// loaded is the path of a shared object of this process.
func loaded(name string) string {
	maps, _ := os.ReadFile("/proc/self/maps")
	for _, line := range strings.Split(string(maps), "\n") {
		if at := strings.Index(line, "/"); at >= 0 && strings.Contains(line[at:], name) {
			return line[at:]
		}
	}
	return ""
}
