package main

import "sync"

// hub is an endpoint of the driver null: a channel to each of those who
// connect (where they compete: one for all), and one back.
type hub struct {
	to   []chan []byte
	back chan []byte
}

// Sockets are opened before any of them is used, and by one goroutine.
var hubs = map[string]*hub{}

// nullSocket hands messages over by channels: the floor of this language.
type nullSocket struct {
	name string
	in   chan []byte
	out  *[]chan []byte
	spin bool
	stop chan struct{}
	once sync.Once
}

func openNull(o order) (socket, error) {
	queue := func() chan []byte { return make(chan []byte, o.options.queue(o.work.PayloadBytes)) }
	s := &nullSocket{name: o.bind, stop: make(chan struct{}), spin: o.work.Receive == "spin"}
	if o.bind != "" {
		bound := &hub{back: queue()}
		hubs[o.bind], s.in, s.out = bound, bound.back, &bound.to
		return s, nil
	}
	for _, endpoint := range o.connect {
		peer := hubs[endpoint]
		if s.in == nil && o.work.competing() && len(peer.to) > 0 {
			s.in = peer.to[0]
			continue
		}
		if s.in == nil {
			s.in, s.out = queue(), &[]chan []byte{peer.back}
		}
		peer.to = append(peer.to, s.in)
	}
	return s, nil
}

func (s *nullSocket) endpoint() string { return s.name }
func (s *nullSocket) interrupt()       { s.once.Do(func() { close(s.stop) }) }
func (s *nullSocket) crash()           { s.interrupt() }

func (s *nullSocket) send(message []byte) (bool, error) {
	mine := append([]byte(nil), message...)
	for _, queue := range *s.out {
		select {
		case queue <- mine:
		case <-s.stop:
			return false, nil
		}
	}
	return true, nil
}

func (s *nullSocket) receive() ([]byte, error) {
	if s.spin {
		select {
		case message := <-s.in:
			return message, nil
		default:
			return nil, nil
		}
	}
	select {
	case message := <-s.in:
		return message, nil
	case <-s.stop:
		return nil, nil
	}
}

func init() {
	bindings["null"] = &binding{
		drivers:    []string{"null"},
		known:      map[string][]string{"null": {"queue_messages", "queue_bytes"}},
		transports: []string{"inproc"},
		patterns:   allPatterns,
		open:       openNull,
		applied: func(o order, _ socket) map[string]any {
			return map[string]any{"send_queue_messages": o.options.queue(o.work.PayloadBytes)}
		},
		versions: func() map[string]string { return map[string]string{"library": "none"} },
		made:     map[string]string{"binding": "none: a channel", "library": "none", "copies": "sending: into a new slice; receiving: nothing"},
	}
}
