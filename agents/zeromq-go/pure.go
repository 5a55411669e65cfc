package main

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"time"

	zmq "github.com/go-zeromq/zmq4"
)

// pureSocket is a socket of go-zeromq. Its calls block without a time-out:
// interrupt cancels the context that they wait on.
type pureSocket struct {
	zmq.Socket
	kind    kind
	bound   string
	message bool // the idiom
	peer    []byte
	cancel  context.CancelFunc
}

var makers = map[kind]func(context.Context, ...zmq.Option) zmq.Socket{
	"PUB": zmq.NewPub, "SUB": zmq.NewSub, "REQ": zmq.NewReq, "REP": zmq.NewRep,
	"DEALER": zmq.NewDealer, "ROUTER": zmq.NewRouter, "PAIR": zmq.NewPair,
}

func openPure(o order) (socket, error) {
	// Subscribers connect before their publisher's probes come: it dials until connect_timeout.
	tries := int(o.work.ConnectTimeout / (10 * millisecond))
	life, cancel := context.WithCancel(context.Background())
	s := &pureSocket{kind: o.kind, cancel: cancel, message: o.options.text("idiom", "message") == "message"}
	s.Socket = makers[o.kind](life, zmq.WithDialerRetry(10*time.Millisecond), zmq.WithDialerMaxRetries(tries))
	switch o.kind {
	case "PUB":
		if err := s.SetOption(zmq.OptionHWM, o.options.queue(o.work.PayloadBytes)); err != nil {
			return nil, err
		}
	case "SUB":
		if err := s.SetOption(zmq.OptionSubscribe, ""); err != nil {
			return nil, err
		}
	}
	if o.bind != "" {
		if err := s.Listen(o.bind); err != nil {
			return nil, err
		}
		s.bound = o.bind
		if strings.HasSuffix(o.bind, ":0") {
			s.bound = "tcp://" + s.Addr().String()
		}
	}
	for _, endpoint := range o.connect {
		if err := s.Dial(endpoint); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *pureSocket) endpoint() string { return s.bound }

func (s *pureSocket) interrupt() {
	s.cancel()
	if s.kind == "REQ" { // reads its connection itself, and heeds no context
		_ = s.Close()
	}
}

func (s *pureSocket) crash() { _ = s.Close() }

func (s *pureSocket) send(message []byte) (bool, error) {
	var m zmq.Msg
	switch s.kind {
	case "ROUTER":
		m = zmq.NewMsgFrom(s.peer, message)
	case "PUB": // keeps what it is given in its queue
		m = zmq.NewMsg(append([]byte(nil), message...))
	default:
		m = zmq.NewMsg(message)
	}
	return s.outcome(s.Send(m))
}

// outcome tells a connection that ends or is not there yet from an error.
func (s *pureSocket) outcome(err error) (bool, error) {
	if err == nil {
		return true, nil
	}
	var ended net.Error
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, zmq.ErrClosedConn) || errors.As(err, &ended) ||
		strings.Contains(err.Error(), "no connections available") {
		time.Sleep(time.Millisecond)
		return false, nil
	}
	return false, err
}

func (s *pureSocket) receive() ([]byte, error) {
	m, err := s.Recv()
	if ok, err := s.outcome(err); !ok {
		return nil, err
	}
	if s.kind == "ROUTER" {
		s.peer = m.Frames[0]
		m.Frames = m.Frames[1:]
	}
	if s.message && len(m.Frames) == 1 {
		return m.Frames[0], nil
	}
	return m.Bytes(), nil
}

func init() {
	bindings["pure"] = &binding{
		drivers:    []string{"zeromq"},
		known:      map[string][]string{"zeromq": {"queue_messages", "queue_bytes", "tcp_nodelay", "idiom", "request_reply", "pairs"}},
		idiom:      "message",
		transports: []string{"ipc", "tcp"},
		patterns:   []string{"pairs", "fan-out", "fan-in", "request-reply"},
		open:       openPure,
		applied: func(o order, s socket) map[string]any {
			applied := map[string]any{"receive_queue_messages": 10} // fixed in the library
			if o.kind == "PUB" {
				applied["send_queue_messages"] = o.options.queue(o.work.PayloadBytes)
			}
			return applied
		},
		versions: func() map[string]string {
			return map[string]string{"library": "go-zeromq", "version": version("github.com/go-zeromq/zmq4")}
		},
		made: map[string]string{
			"binding": module("github.com/go-zeromq/zmq4"),
			"library": "pure Go",
			"copies":  "sending: PUB into a new slice, which its queue keeps, others nothing; receiving: nothing (idiom message), or all frames into a new slice (bytes)",
			"call":    "blocking, on goroutines of the library",
		},
	}
}
