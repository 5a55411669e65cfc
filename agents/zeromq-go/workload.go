package main

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"math/bits"
	"strconv"
	"strings"
	_ "unsafe" // for go:linkname
)

const (
	millisecond = int64(1e6)
	second      = int64(1e9)
	forever     = int64(math.MaxInt64)

	probe        = uint32(0xffffffff)
	endMarker    = uint32(0xfffffffe)
	sequencesMax = uint64(0xffffffef)
)

// nanotime is CLOCK_MONOTONIC, ns: what package time reads.
//
//go:linkname nanotime runtime.nanotime
func nanotime() int64

type workload struct {
	Pattern        string
	Transport      string
	Publishers     uint64
	Subscribers    uint64
	Rate           any
	Arrival        string
	PayloadBytes   int    `json:"payload_bytes"`
	Warmup         int64  `json:"warmup_ns"`
	Drain          int64  `json:"drain_ns"`
	Pacing         string `json:"pacing"`
	Quantum        int64  `json:"pacing_quantum_ns"`
	Receive        string
	Verify         string
	Seed           uint64
	ConnectTimeout int64 `json:"connect_timeout_ns"`
	Extent         struct {
		Time  int64  `json:"time_ns"`
		Count uint64 `json:"count"`
	}
	perKs uint64 // messages in 1,000 s of a publisher; 0: as fast as possible
	burst uint64
	ahead int64 // what is added to this machine's clock in messages, ns
}

func (w *workload) resolve() {
	if rate, ok := w.Rate.(float64); ok {
		w.perKs = uint64(math.Round(rate * 1000))
	}
	w.burst = 1
	if size, ok := strings.CutPrefix(w.Arrival, "burst:"); ok {
		w.burst, _ = strconv.ParseUint(size, 10, 32)
	}
}

func (w *workload) competing() bool { return w.Pattern == "pipeline" }

// timed says whether latencies are measured: not where messages go out as fast
// as possible, for there a latency is the length of a queue.
func (w *workload) timed() bool { return w.perKs > 0 || w.Pattern == "request-reply" }

// due is when message i is due after the first of its publisher, ns.
func (w *workload) due(i uint64) int64 { return mulDiv(i, 1e12, w.perKs) }

func mulDiv(a, b, c uint64) int64 {
	high, low := bits.Mul64(a, b)
	quotient, _ := bits.Div64(high, low, c)
	return int64(quotient)
}

// ledgerRoom is how many messages of one publisher are kept account of.
func (w *workload) ledgerRoom() uint64 {
	perKs := w.perKs
	if perKs == 0 {
		perKs = 50e9
	}
	length := w.Extent.Time + w.Warmup
	room := uint64(mulDiv(uint64(length), perKs, 1e12))
	if w.Arrival == "poisson" {
		room += 12 * uint64(math.Sqrt(float64(room)))
	}
	return min(room+w.burst+w.Extent.Count+1024, sequencesMax)
}

// stall is the silence of a subscriber that counts as one, ns.
func (w *workload) stall(heard uint64) int64 {
	if w.perKs == 0 {
		return second / 2
	}
	group := w.burst
	if w.competing() {
		group *= w.Subscribers
	}
	return max(20*mulDiv(group, 1e12, w.perKs*max(heard, 1)), 100*millisecond)
}

// window is the measured part of a run; a message belongs to it by its intended time.
type window struct {
	start, from, to, slice int64 // to: forever, for a count at max
	slices                 int
}

func newWindow(w *workload, start int64) *window {
	from := start + w.Warmup
	length := w.Extent.Time
	if w.Extent.Count > 0 && w.perKs > 0 {
		length = w.due(w.Extent.Count)
	}
	if w.Extent.Count > 0 && w.perKs == 0 {
		return &window{start, from, forever, second, 3600}
	}
	slice := max(10*millisecond, min(second, length/20), (length+3599)/3600)
	return &window{start, from, from + length, slice, max(1, int((length+slice-1)/slice))}
}

func (w *window) open() bool           { return w.to == forever }
func (w *window) holds(at int64) bool  { return at >= w.from && at < w.to }
func (w *window) place(at int64) int64 { return min((at-w.from)/w.slice, int64(w.slices-1)) }

// random is SplitMix64.
type random uint64

func (r *random) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// body is what every message carries behind its header.
func body(length int) []byte {
	r, text := random(0x7075626d61726b31), make([]byte, 0, length+8)
	for len(text) < length {
		text = binary.LittleEndian.AppendUint64(text, r.next())
	}
	return text[:length:length]
}

func bodyAt(length int) int {
	if length >= 32 {
		return 32
	}
	return min(24, length)
}

// schedule says when the messages of a publisher are due: a function of their number.
type schedule struct {
	w      *workload
	index  uint64
	offset int64
	at     int64 // ns from the start
	random random
	sum    float64
}

func newSchedule(w *workload, publisher uint64) *schedule {
	mixed := random(w.Seed ^ publisher<<32)
	s := &schedule{w: w, random: random(mixed.next())}
	if w.Arrival != "poisson" {
		s.offset = mulDiv(uint64(w.due(w.burst)), publisher, w.Publishers)
	}
	s.compute()
	return s
}

func (s *schedule) compute() {
	if s.w.Arrival != "poisson" {
		s.at = s.offset + s.w.due(s.index/s.w.burst*s.w.burst)
		return
	}
	unit := float64(s.random.next()>>11) / (1 << 53)
	s.sum += -math.Log(1-unit) * 1e12 / float64(s.w.perKs)
	s.at = int64(s.sum)
}

func (s *schedule) advance() {
	s.index++
	s.compute()
}

// options are those of the system, with their defaults filled in.
type options map[string]json.RawMessage

func (o options) number(name string, otherwise int64) int64 {
	value := otherwise
	_ = json.Unmarshal(o[name], &value)
	return value
}

func (o options) text(name, otherwise string) string {
	value := otherwise
	_ = json.Unmarshal(o[name], &value)
	return value
}

// queue is how many messages may wait at a socket.
func (o options) queue(payloadBytes int) int {
	by := o.number("queue_bytes", 64<<20) / int64(max(1, payloadBytes))
	return int(max(1, min(o.number("queue_messages", 1000), by, math.MaxInt32)))
}
