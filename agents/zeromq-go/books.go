package main

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/binary"
	"math/bits"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// outside makes zeroes outside of Go's heap, whose size says how often it is
// collected: books are to change nothing about that. Untouched they take no memory.
func outside[T uint32 | uint64](length uint64) []T {
	var one T
	memory, err := unix.Mmap(-1, 0, int(length*uint64(unsafe.Sizeof(one))), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	if err != nil {
		fatal("no memory for the books: %v", err)
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&memory[0])), length)
}

const valueBits = 42 // 73 minutes: what is longer counts as that

// histogram counts values by their first bits.
type histogram struct {
	bits   int
	counts []uint32
}

func newHistogram(precision int) *histogram {
	return &histogram{precision, outside[uint32](uint64(valueBits-precision+2) << precision)}
}

func (h *histogram) record(value int64) {
	v := uint64(max(0, min(value, 1<<valueBits-1)))
	shift := max(0, bits.Len64(v)-h.bits-1)
	h.counts[uint64(shift)<<h.bits+v>>shift]++
}

// merged is what histograms of one precision hold together, as the protocol writes it; none if that is nothing.
func merged(histograms []*histogram) [][2]uint64 {
	var pairs [][2]uint64
	for at := 0; len(histograms) > 0 && at < len(histograms[0].counts); at++ {
		var count uint64
		for _, h := range histograms {
			count += uint64(h.counts[at])
		}
		if count > 0 {
			precision := histograms[0].bits
			shift := max(0, at>>precision-1)
			pairs = append(pairs, [2]uint64{uint64(at-shift<<precision) << shift, count})
		}
	}
	return pairs
}

type silence struct {
	Count     uint64 `json:"count"`
	Longest   int64  `json:"longest_ns"`
	LongestAt int64  `json:"longest_at_ns"`
}

func (s *silence) add(count uint64, length, at int64) {
	s.Count += count
	if length > s.Longest {
		s.Longest, s.LongestAt = length, at
	}
}

type ledger struct {
	Expected     uint64 `json:"expected"`
	Delivered    uint64 `json:"delivered"`
	Duplicated   uint64 `json:"duplicated"`
	Reordered    uint64 `json:"reordered"`
	Corrupted    uint64 `json:"corrupted"`
	Unidentified uint64 `json:"unidentified"`
	Negative     uint64 `json:"negative"`
}

func (l *ledger) add(o ledger) {
	l.Expected += o.Expected
	l.Delivered += o.Delivered
	l.Duplicated += o.Duplicated
	l.Reordered += o.Reordered
	l.Corrupted += o.Corrupted
	l.Unidentified += o.Unidentified
	l.Negative += o.Negative
}

// stream is what a subscriber heard of one publisher.
type stream struct {
	seen         []uint64
	next         uint32 // the sequence after the highest that came
	distinct     atomic.Uint64
	heard, ended atomic.Bool
	before       int64 // the last latency, and its sequence
	beforeIs     uint32
	hasBefore    bool
}

func (s *stream) count(from, to uint64) (count uint64) {
	for at := from; at < min(to, uint64(len(s.seen))*64); at++ {
		count += s.seen[at/64] >> (at % 64) & 1
	}
	return count
}

// bits are the marks of all sequences: raw DEFLATE, base64.
func (s *stream) bits() string {
	var packed bytes.Buffer
	writer, _ := flate.NewWriter(&packed, flate.DefaultCompression)
	_ = binary.Write(writer, binary.LittleEndian, s.seen[:(uint64(s.next)+63)/64])
	_ = writer.Close()
	return base64.StdEncoding.EncodeToString(packed.Bytes())
}

// incoming are the books of one subscriber, or of the receiving side of a requester.
type incoming struct {
	work         *workload
	window       *window
	streams      []stream
	first        uint32
	body         []byte // where it is compared
	ledger       ledger
	arrived      uint64
	last         int64
	jitter       float64
	jitterPairs  uint64
	latency      *histogram
	intended     *histogram
	service      *histogram
	receiveLag   *histogram
	slices       []uint64
	sliceLatency []*histogram
	stalls       silence
	stall        int64
	lastArrival  int64
	// From the end of one call to the beginning of the next, over the messages
	// that came at once: how long the last one can have waited for those before it.
	backlog, asked, taken int64
}

func newIncoming(w *workload, first, count uint32) *incoming {
	in := &incoming{work: w, first: first, streams: make([]stream, count), stall: w.stall(uint64(count)), taken: forever}
	for i := range in.streams {
		in.streams[i].seen = outside[uint64](w.ledgerRoom()/64 + 1)
	}
	if w.Verify == "full" {
		in.body = body(w.PayloadBytes)[bodyAt(w.PayloadBytes):]
	}
	if w.timed() {
		in.latency, in.intended, in.service, in.receiveLag = newHistogram(11), newHistogram(11), newHistogram(11), newHistogram(11)
	}
	return in
}

func (in *incoming) start(w *window) {
	in.window = w
	in.slices = outside[uint64](uint64(w.slices))
	if in.work.timed() && !w.open() {
		in.sliceLatency = make([]*histogram, w.slices)
		for i := range in.sliceLatency {
			in.sliceLatency[i] = newHistogram(8)
		}
	}
}

// listens: the next message is asked for.
func (in *incoming) listens(at int64) {
	in.asked = at
	in.backlog += max(0, at-in.taken)
}

// idle: there was none.
func (in *incoming) idle() { in.backlog, in.taken = 0, forever }

// hands: the call brought a message.
func (in *incoming) hands(now int64) {
	if now-in.asked > 5000 { // it was not there yet when it was asked for
		in.backlog = 0
	}
	in.taken = now
}

// instant is one that a message carries, by this machine's clock.
func (in *incoming) instant(at []byte) int64 {
	return int64(binary.LittleEndian.Uint64(at)) - in.work.ahead
}

func (in *incoming) damaged() { in.ledger.Corrupted++; in.ledger.Unidentified++ }

// take enters a message; whether somebody may want to know: a first probe, an end marker.
func (in *incoming) take(message []byte, now int64) (news bool) {
	if len(message) < 16 {
		in.damaged()
		return false
	}
	intended := in.instant(message)
	publisher, sequence := binary.LittleEndian.Uint32(message[8:]), binary.LittleEndian.Uint32(message[12:])
	slot := publisher - in.first
	if slot >= uint32(len(in.streams)) || len(message) != in.work.PayloadBytes {
		in.damaged()
		return false
	}
	s := &in.streams[slot]
	if sequence == probe {
		return !s.heard.Swap(true)
	}
	if sequence == endMarker {
		return !s.ended.Swap(true)
	}
	w := in.window
	if w == nil || intended < w.start || intended > now+second {
		in.damaged()
		return false
	}
	word, bit := sequence/64, uint64(1)<<(sequence%64)
	if int(word) >= len(s.seen) {
		in.damaged() // nobody sends what there is no room for
		return false
	}
	measured := w.holds(intended)
	if s.seen[word]&bit != 0 {
		if measured {
			in.ledger.Duplicated++
		}
		return false
	}
	s.seen[word] |= bit
	s.distinct.Store(s.distinct.Load() + 1)
	if sequence >= s.next {
		s.next = sequence + 1
	} else if measured {
		in.ledger.Reordered++
	}
	place := int64(-1)
	if w.holds(now) && (measured || !w.open()) {
		place = w.place(now)
		in.arrived++
		in.slices[place]++
		in.noteSilence(max(in.lastArrival, w.from), now)
	}
	if !measured {
		return false
	}
	in.last = now
	if in.body != nil && !bytes.Equal(message[len(message)-len(in.body):], in.body) {
		in.ledger.Corrupted++
		return false
	}
	if in.latency != nil {
		in.measure(s, message, intended, sequence, now, place)
	}
	return false
}

func (in *incoming) measure(s *stream, message []byte, intended int64, sequence uint32, now, place int64) {
	if now < intended {
		in.ledger.Negative++
		return
	}
	latency := now - intended
	in.intended.record(latency)
	if len(message) >= 24 {
		sent := in.instant(message[16:])
		if sent <= now {
			in.service.record(now - sent)
		}
		if len(message) >= 32 {
			if free := in.instant(message[24:]); intended <= free && free <= sent {
				latency = max(0, latency-(sent-free))
			}
		}
	}
	in.latency.record(latency)
	in.receiveLag.record(in.backlog)
	if place >= 0 && in.sliceLatency != nil {
		in.sliceLatency[place].record(latency)
	}
	if s.hasBefore && (in.work.competing() || s.beforeIs+1 == sequence) {
		in.jitter += float64(max(latency-s.before, s.before-latency))
		in.jitterPairs++
	}
	s.before, s.beforeIs, s.hasBefore = latency, sequence, true
}

func (in *incoming) noteSilence(since, now int64) {
	if now-since > in.stall {
		in.stalls.add(1, now-since, since-in.window.from)
	}
	in.lastArrival = now
}

// complete says whether nothing more can come.
func (in *incoming) complete(totals map[uint32]total) bool {
	for i := range in.streams {
		s := &in.streams[i]
		all := !in.work.competing() && s.distinct.Load() >= totals[in.first+uint32(i)].Sent
		if !all && !s.ended.Load() {
			return false
		}
	}
	return true
}

func (in *incoming) heardAll() bool {
	for i := range in.streams {
		if !in.streams[i].heard.Load() {
			return false
		}
	}
	return true
}

func (in *incoming) received() (count uint64) {
	for i := range in.streams {
		count += in.streams[i].distinct.Load()
	}
	return count
}

// close settles the account: what was sent is known. A client that was killed heard until then.
func (in *incoming) close(totals map[uint32]total, killed int64) {
	for i := range in.streams {
		s := &in.streams[i]
		t, known := totals[in.first+uint32(i)]
		if in.window == nil || !known {
			continue
		}
		in.ledger.Delivered += s.count(t.First, t.End)
		unsent := s.count(t.Sent, uint64(s.next))
		in.ledger.Corrupted += unsent
		in.ledger.Unidentified += unsent
		if !in.work.competing() {
			in.ledger.Expected += t.End - t.First
		}
	}
	if in.window != nil && !in.window.open() && !in.work.competing() && len(totals) > 0 {
		since := max(in.lastArrival, in.window.from)
		in.noteSilence(since, max(since, min(in.window.to, killed)))
	}
}
