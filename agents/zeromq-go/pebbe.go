//go:build cgo

package main

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	zmq "github.com/pebbe/zmq4"
)

var kinds = map[kind]zmq.Type{
	"PUB": zmq.PUB, "SUB": zmq.SUB, "PUSH": zmq.PUSH, "PULL": zmq.PULL, "REQ": zmq.REQ, "REP": zmq.REP,
	"DEALER": zmq.DEALER, "ROUTER": zmq.ROUTER, "PAIR": zmq.PAIR,
}

const (
	wait   = 10 * time.Millisecond // the longest that a call blocks
	eagain = zmq.Errno(syscall.EAGAIN)
)

// pebbeSocket is a socket of libzmq, by cgo.
type pebbeSocket struct {
	*zmq.Socket
	bound   string
	message bool   // the idiom
	peer    string // of a ROUTER: who asked
	router  bool
}

var pebbeContext *zmq.Context

func openPebbe(o order) (socket, error) {
	if pebbeContext == nil {
		context, err := zmq.NewContext()
		if err != nil {
			return nil, err
		}
		if err := first(context.SetIoThreads(int(o.options.number("io_threads", 1))), context.SetMaxSockets(16383)); err != nil {
			return nil, err
		}
		pebbeContext = context
	}
	s, err := pebbeContext.NewSocket(kinds[o.kind])
	if err != nil {
		return nil, err
	}
	linger, _ := time.ParseDuration(o.options.text("linger", "10s"))
	queue, receiving := o.options.queue(o.work.PayloadBytes), wait
	if o.work.Receive == "spin" {
		receiving = 0
	}
	err = first(s.SetSndhwm(queue), s.SetRcvhwm(queue), s.SetLinger(linger), s.SetSndtimeo(wait),
		s.SetRcvtimeo(receiving), s.SetReconnectIvl(wait), s.SetMaxmsgsize(-1))
	if buffer := int(min(o.options.number("socket_buffer", 0), math.MaxInt32)); buffer > 0 && o.work.Transport != "inproc" {
		err = first(err, s.SetSndbuf(buffer), s.SetRcvbuf(buffer))
	}
	if o.kind == "SUB" {
		err = first(err, s.SetSubscribe(""))
	}
	if o.kind == "REQ" {
		err = first(err, s.SetReqRelaxed(1))
	}
	mine := &pebbeSocket{Socket: s, message: o.options.text("idiom", "bytes") == "message", router: o.kind == "ROUTER"}
	if o.bind != "" {
		endpoint := o.bind
		if address, ok := strings.CutSuffix(endpoint, ":0"); ok {
			endpoint = address + ":*"
		}
		if err = first(err, s.Bind(endpoint)); err == nil {
			mine.bound, err = s.GetLastEndpoint()
		}
	}
	for _, endpoint := range o.connect {
		err = first(err, s.Connect(endpoint))
	}
	return mine, err
}

// first is the first of them that is one.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *pebbeSocket) endpoint() string { return s.bound }
func (s *pebbeSocket) interrupt()       {}

func (s *pebbeSocket) crash() {
	_ = s.SetLinger(0)
	_ = s.Close()
}

func (s *pebbeSocket) send(message []byte) (bool, error) {
	var err error
	switch {
	case s.router && s.message:
		_, err = s.SendMessage(s.peer, message)
	case s.router:
		if _, err = s.SendBytes([]byte(s.peer), zmq.SNDMORE); err == nil {
			_, err = s.SendBytes(message, 0)
		}
	case s.message:
		_, err = s.SendMessage(message)
	default:
		_, err = s.SendBytes(message, 0)
	}
	if err == nil || zmq.AsErrno(err) == eagain {
		return err == nil, nil
	}
	return false, err
}

func (s *pebbeSocket) receive() (message []byte, err error) {
	if s.message {
		var frames [][]byte
		if frames, err = s.RecvMessageBytes(0); err == nil {
			message = frames[len(frames)-1]
			s.peer = string(frames[0])
		}
	} else {
		message, err = s.RecvBytes(0)
		if err == nil && s.router {
			s.peer = string(message)
			message, err = s.RecvBytes(0)
		}
	}
	switch {
	case err == nil:
		return message, nil
	case zmq.AsErrno(err) == eagain:
		return nil, nil
	case zmq.AsErrno(err) == zmq.EFSM: // a late reply was taken for the one awaited
		time.Sleep(wait)
		return nil, nil
	}
	return nil, err
}

// granted is what the kernel makes of a socket buffer that a process asks for.
func granted(asked int, limit string) any {
	if asked <= 0 {
		return "automatic"
	}
	text, _ := os.ReadFile("/proc/sys/net/core/" + limit)
	if most, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
		return min(asked, most)
	}
	return asked
}

func pebbeApplied(o order, s socket) map[string]any {
	mine, applied := s.(*pebbeSocket), map[string]any{}
	if linger, err := mine.GetLinger(); err == nil {
		applied["linger"] = fmt.Sprintf("%gs", linger.Seconds())
	}
	applied["io_threads"], _ = pebbeContext.GetIoThreads()
	applied["send_queue_messages"], _ = mine.GetSndhwm()
	applied["receive_queue_messages"], _ = mine.GetRcvhwm()
	if o.work.Transport != "inproc" {
		sending, _ := mine.GetSndbuf()
		receiving, _ := mine.GetRcvbuf()
		applied["send_buffer_bytes"], applied["receive_buffer_bytes"] = granted(sending, "wmem_max"), granted(receiving, "rmem_max")
	}
	return applied
}

func libzmq() string {
	major, minor, patch := zmq.Version()
	return fmt.Sprintf("%d.%d.%d", major, minor, patch)
}

func init() {
	bindings["pebbe"] = &binding{
		drivers: []string{"zeromq", "null"},
		known: map[string][]string{
			"zeromq": {"linger", "io_threads", "queue_messages", "queue_bytes", "socket_buffer", "tcp_nodelay", "idiom", "request_reply", "pairs"},
			"null":   {"queue_messages", "queue_bytes"},
		},
		idiom:      "bytes",
		transports: []string{"inproc", "ipc", "tcp"},
		patterns:   allPatterns,
		open:       openPebbe,
		applied:    pebbeApplied,
		versions: func() map[string]string {
			return map[string]string{"library": "libzmq", "version": libzmq(), "path": loaded("libzmq.so")}
		},
		made: map[string]string{
			"binding": module("github.com/pebbe/zmq4"),
			"library": "libzmq " + libzmq(),
			"copies":  "sending: into libzmq's message; receiving: out of libzmq's message into a new slice",
			"call":    "blocking, by cgo",
		},
	}
}
