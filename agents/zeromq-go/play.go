package main

import (
	"encoding/binary"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const nap = 50 * millisecond // nobody sleeps for longer, so that a stop is noticed

// control is what clients are told.
type control struct {
	start   atomic.Int64
	end     atomic.Int32 // 1: clients are dead, 2: the run is over
	drains  atomic.Bool
	changed chan struct{} // somebody wants to be looked at
}

func (c *control) notify() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

func (c *control) silenced() bool { return c.end.Load() > 0 }

type total struct {
	Publisher uint32 `json:"publisher"`
	Sent      uint64 `json:"sent"`
	First     uint64 `json:"window_first"`
	End       uint64 `json:"window_end"`
	Offered   uint64 `json:"offered"`
}

// alarm wakes a goroutine at an instant: a timerfd, which is exact where the
// runtime's own timers are late by up to a millisecond.
type alarm struct {
	fd   int
	file *os.File
}

func newAlarm() *alarm {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		fatal("no timer: %v", err)
	}
	return &alarm{fd, os.NewFile(uintptr(fd), "timer")}
}

func (a *alarm) sleepUntil(at int64) {
	var expired [8]byte
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(max(at, 1))}
	if unix.TimerfdSettime(a.fd, unix.TFD_TIMER_ABSTIME, &spec, nil) == nil {
		_, _ = a.file.Read(expired[:])
	}
}

// pacer says when a publisher wakes up for a due time. The margin follows the
// 99th percentile of what waking up takes: up by a step for each wake-up that
// took longer, down by a hundredth of it for each other.
type pacer struct {
	pacing string
	wake   int64 // what waking up takes, ns times 100
	most   int64 // the longest margin that the budget allows
	spent  int64 // time awake before due times in the window
	from   int64
	alarm  *alarm
}

func newPacer(w *workload, budget float64, from int64) *pacer {
	p := &pacer{pacing: w.Pacing, wake: 60_000 * 100, from: from, alarm: newAlarm()}
	if w.perKs > 0 {
		p.most = min(int64(budget*1e12/float64(w.perKs)), 200_000)
	}
	return p
}

func (p *pacer) margin() int64 {
	switch p.pacing {
	case "sleep":
		return 0
	case "spin":
		return forever
	}
	return min(p.wake/100, p.most)
}

// wait until an instant, or for a nap; the time after it.
func (p *pacer) wait(until int64) int64 {
	now := nanotime()
	if at := until - p.margin(); at > now {
		p.alarm.sleepUntil(min(at, now+nap))
		if now = nanotime(); now < at {
			return now
		}
		if now-at > p.wake/100 {
			p.wake = min(p.wake+2_000*99, 200_000*100)
		} else {
			p.wake = max(p.wake-2_000, 2_000*100)
		}
	}
	awake, until := now, min(until, now+nap)
	for now < until {
		runtime.Gosched()
		now = nanotime()
	}
	if awake >= p.from {
		p.spent += max(0, min(now, until)-awake)
	}
	return now
}

// outgoing are the books of one publisher, or of the sending side of a requester.
type outgoing struct {
	id       uint32
	work     *workload
	window   *window
	schedule *schedule
	left     uint64 // of a count
	message  []byte
	sequence uint64
	most     uint64
	total    total
	hasFirst bool
	intended int64
	free     int64
	done     bool

	sent      atomic.Uint64
	lagMax    atomic.Int64
	firstSent int64
	slices    []uint64
	sendLag   *histogram
	ownLag    *histogram
}

func newOutgoing(w *workload, id uint32, win *window) *outgoing {
	out := &outgoing{id: id, work: w, window: win, left: w.Extent.Count, message: body(w.PayloadBytes), most: w.ledgerRoom()}
	out.slices = outside[uint64](uint64(win.slices))
	if w.perKs > 0 {
		out.schedule = newSchedule(w, uint64(id))
		out.sendLag, out.ownLag = newHistogram(11), newHistogram(11)
	}
	return out
}

// over says whether a message that is due then is none of the run any more.
func (out *outgoing) over(due int64) bool {
	if out.work.Extent.Count > 0 {
		return out.left == 0
	}
	return due >= out.window.to
}

// next is when to send the next message: not later than now, if at once.
func (out *outgoing) next(now int64) (due int64, more bool) {
	due = max(now, out.window.start)
	if out.schedule != nil {
		due = out.window.start + out.schedule.at
	}
	late := out.schedule != nil && !out.window.open() && now >= out.window.to+out.work.Drain
	if out.over(due) || out.sequence >= out.most || due <= now && late {
		return 0, false
	}
	out.intended = due
	return due, true
}

// header writes what the message says of itself, its instants as all hosts mean them.
func (out *outgoing) header(sequence uint32, intended, sent, free int64) []byte {
	m, ahead := out.message, out.work.ahead
	binary.LittleEndian.PutUint64(m, uint64(intended+ahead))
	binary.LittleEndian.PutUint32(m[8:], out.id)
	binary.LittleEndian.PutUint32(m[12:], sequence)
	if len(m) >= 24 {
		binary.LittleEndian.PutUint64(m[16:], uint64(sent+ahead))
	}
	if len(m) >= 32 {
		binary.LittleEndian.PutUint64(m[24:], uint64(free+ahead))
	}
	return m
}

// accepted: the message was offered at began, and the call returned at ended.
func (out *outgoing) accepted(began, ended int64) {
	free := max(out.intended, out.free)
	own := max(0, began-free)
	if own > out.lagMax.Load() {
		out.lagMax.Store(own)
	}
	if out.intended >= out.window.from {
		if !out.hasFirst {
			out.hasFirst, out.total.First, out.firstSent = true, out.sequence, began
		}
		out.total.End = out.sequence + 1
		out.total.Offered++
		out.left--
		if out.sendLag != nil {
			out.sendLag.record(began - out.intended)
			out.ownLag.record(own)
		}
	}
	if out.window.holds(began) {
		out.slices[out.window.place(began)]++
	}
	out.free = free + ended - began // the call was the system's
	out.sequence++
	out.sent.Store(out.sequence)
	if out.schedule != nil {
		out.schedule.advance()
	}
}

// finish counts what was due by then in the window and never sent.
func (out *outgoing) finish(until int64) {
	for s := out.schedule; s != nil; s.advance() {
		due := out.window.start + s.at
		if out.over(due) || due > until {
			break
		}
		if due >= out.window.from {
			out.total.Offered++
			out.left--
		}
	}
	t := &out.total
	t.Publisher, t.Sent = out.id, out.sequence
	if !out.hasFirst {
		t.First, t.End = out.sequence, out.sequence
	}
	out.done = true
}

// player is a client on its goroutine.
type player struct {
	role    string
	id      uint32
	work    *workload
	socket  socket
	control *control
	cpus    []int
	budget  float64
	out     *outgoing
	sending atomic.Pointer[outgoing] // the same, for the display
	in      *incoming
	pacer   *pacer
	isReady atomic.Bool
	hasSent atomic.Bool
	killed  int64
	ended   chan struct{}
}

func (p *player) run() {
	if len(p.cpus) > 0 {
		runtime.LockOSThread()
		var set unix.CPUSet
		for _, cpu := range p.cpus {
			set.Set(cpu)
		}
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			fatal("cannot pin to processors %v: %v", p.cpus, err)
		}
	}
	play := map[string]func() error{"publisher": p.publish, "subscriber": p.subscribe, "requester": p.request, "replier": p.reply}
	p.killed = forever
	err := play[p.role]()
	if err != nil {
		fatal("%s %d: %v", p.role, p.id, err)
	}
	p.kill()
	for p.control.end.Load() == 1 {
		time.Sleep(10 * time.Millisecond)
	}
	close(p.ended)
}

func (p *player) kill() {
	if p.killed == forever && p.control.end.Load() == 1 {
		p.killed = nanotime()
		p.socket.crash()
	}
}

func (p *player) ready() {
	p.isReady.Store(true)
	p.control.notify()
}

// markers go out until the condition ends: probes, or end markers.
func (p *player) markers(out *outgoing, sequence uint32, until func() bool) error {
	copies := uint64(1)
	if p.work.competing() {
		copies = p.work.Subscribers
	}
	every := min(max(5*millisecond, int64(p.work.Publishers)*millisecond/10), second)
	for !until() {
		for n := uint64(0); n < copies && !until(); n++ {
			now := nanotime()
			if _, err := p.socket.send(out.header(sequence, now, now, now)); err != nil {
				return err
			}
		}
		time.Sleep(time.Duration(every))
	}
	return nil
}

func (p *player) started() bool { return p.control.start.Load() > 0 || p.control.silenced() }

// begin makes the books of the sending side, when the start is known.
func (p *player) begin() {
	win := newWindow(p.work, p.control.start.Load())
	p.out = newOutgoing(p.work, p.id, win)
	p.sending.Store(p.out)
	p.pacer = newPacer(p.work, p.budget, win.from)
}

// end: all is sent that will be; where the client was killed, by then.
func (p *player) end() {
	p.kill()
	p.out.finish(p.killed)
	p.hasSent.Store(true)
	p.control.notify()
}

// send plays the schedule; offer is told the message and the time, and says when it was through.
func (p *player) send(offer func(message []byte, now int64) (int64, error)) error {
	out, woke, waited := p.out, int64(0), false
	for now := nanotime(); !p.control.silenced(); {
		if waited {
			woke, waited = now, false
		}
		due, more := out.next(now)
		if !more {
			return nil
		}
		if due > now {
			now, waited = p.pacer.wait(max(due, woke+p.work.Quantum)), true
			continue
		}
		var err error
		if now, err = offer(out.header(uint32(out.sequence), out.intended, now, max(out.intended, out.free)), now); err != nil {
			return err
		}
	}
	return nil
}

func (p *player) publish() error {
	p.ready()
	marker := &outgoing{id: p.id, work: p.work, message: body(p.work.PayloadBytes)}
	if err := p.markers(marker, probe, p.started); err != nil || p.control.start.Load() == 0 {
		return err
	}
	p.begin()
	err := p.send(func(message []byte, began int64) (int64, error) {
		ok, err := p.socket.send(message)
		now := nanotime()
		if ok {
			p.out.accepted(began, now)
		} else {
			p.out.free = max(p.out.free, now)
		}
		return now, err
	})
	p.end()
	if err != nil {
		return err
	}
	return p.markers(marker, endMarker, p.control.silenced)
}

func (p *player) subscribe() error {
	in, c := p.in, p.control
	for timed := p.work.timed(); !c.silenced(); {
		if timed {
			in.listens(nanotime())
		}
		message, err := p.socket.receive()
		if err != nil {
			return err
		}
		if message == nil {
			in.idle()
			if p.work.Receive == "spin" {
				runtime.Gosched()
			}
			continue
		}
		now := nanotime()
		in.hands(now)
		if start := c.start.Load(); in.window == nil && start > 0 {
			in.start(newWindow(p.work, start))
		}
		if in.take(message, now) || c.drains.Load() {
			c.notify()
		}
	}
	return nil
}

func (p *player) request() error {
	marker := &outgoing{id: p.id, work: p.work, message: body(p.work.PayloadBytes)}
	for !p.in.heardAll() && !p.control.silenced() {
		now := nanotime()
		if ok, err := p.socket.send(marker.header(probe, now, now, now)); err != nil {
			return err
		} else if ok {
			if _, err := p.answer(p.control.silenced); err != nil {
				return err
			}
		}
	}
	p.ready()
	for !p.started() {
		time.Sleep(5 * time.Millisecond)
	}
	if p.control.start.Load() == 0 {
		return nil
	}
	p.begin()
	p.in.start(p.out.window)
	err := p.send(func(message []byte, began int64) (int64, error) {
		ok, err := p.socket.send(message)
		now := nanotime()
		if ok && err == nil {
			p.out.accepted(began, began)
			now, err = p.answer(func() bool { return nanotime() >= began+p.work.Drain || p.control.silenced() })
		}
		p.out.free = max(p.out.free, now) // the wait for the reply, or for room, is the system's
		return now, err
	})
	p.end()
	for err == nil && !p.control.silenced() {
		time.Sleep(5 * time.Millisecond)
	}
	return err
}

// answer waits for a reply; the time of its arrival, or when it was given up.
func (p *player) answer(giveUp func() bool) (int64, error) {
	for {
		p.in.listens(nanotime())
		message, err := p.socket.receive()
		now := nanotime()
		if message != nil {
			p.in.idle() // one at a time: it waited for none
			p.in.take(message, now)
		}
		if message != nil || err != nil || giveUp() {
			return now, err
		}
	}
}

func (p *player) reply() error {
	p.ready()
	for !p.control.silenced() {
		message, err := p.socket.receive()
		if err != nil {
			return err
		}
		for done := message == nil; !done && !p.control.silenced(); {
			if done, err = p.socket.send(message); err != nil {
				return err
			}
		}
	}
	return nil
}
