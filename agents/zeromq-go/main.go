// Plays clients of ZeroMQ in Go for pubmark, by its agent protocol: pebbe/zmq4
// (libzmq, by cgo), go-zeromq/zmq4 (Go alone), or channels (the floor).
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const agentVersion = "1.0.0"

type client struct {
	Role    string
	ID      uint32
	Flow    int
	Bind    string
	Connect []string
	First   uint32 `json:"hears_first"`
	Count   uint32 `json:"hears_count"`
}

type command struct {
	Type           string
	Protocol       int
	Driver         string
	Options        options
	Flows          []struct{ Workload *workload }
	Clients        []client
	SpinCores      float64 `json:"spin_cores"`
	ClockOffset    int64   `json:"clock_offset_ns"`
	PublisherCPUs  []int   `json:"publisher_cpus"`
	SubscriberCPUs []int   `json:"subscriber_cpus"`
	At             int64   `json:"at_ns"`
	Publishers     []total
	Deadline       int64 `json:"deadline_ns"`
}

type fields map[string]any

var (
	protocol     *os.File // the real standard output: what a library prints goes to the log
	protocolLock sync.Mutex
)

func say(event string, more fields) {
	line := fields{"type": event}
	for name, value := range more {
		line[name] = value
	}
	text, err := json.Marshal(line)
	if err != nil {
		fatal("cannot be written: %v", err)
	}
	protocolLock.Lock()
	defer protocolLock.Unlock()
	_, _ = protocol.Write(append(text, '\n'))
}

func fatal(format string, values ...any) {
	end(fields{"message": fmt.Sprintf(format, values...), "fatal": true})
}

// end says an error and ends the process.
func end(error fields) {
	say("error", error)
	os.Exit(1)
}

// orphaned ends the process: the coordinator has gone.
func orphaned() {
	time.Sleep(200 * time.Millisecond) // an exit that was said before counts
	scratch := os.Getenv("PUBMARK_SCRATCH")
	if _, err := os.Stat(filepath.Join(scratch, "lock")); err == nil && filepath.IsAbs(scratch) &&
		strings.HasPrefix(filepath.Base(scratch), "pubmark-") {
		_ = os.RemoveAll(scratch)
	}
	os.Exit(1)
}

// version of a module that this program is built of.
func version(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == path {
				return module.Version
			}
		}
	}
	return "unknown"
}

func module(path string) string { return path + " " + version(path) }

// flags are those that the program was built with, and the runtime's switches.
func flags() string {
	var all []string
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if strings.HasPrefix(setting.Key, "-") || setting.Key == "CGO_ENABLED" || setting.Key == "GOAMD64" {
				all = append(all, setting.Key+"="+setting.Value)
			}
		}
	}
	percent := debug.SetGCPercent(100)
	debug.SetGCPercent(percent)
	return strings.Join(append(all, fmt.Sprintf("GOGC=%d", percent), fmt.Sprintf("GOMAXPROCS=%d", runtime.GOMAXPROCS(0))), " ")
}

// agent is the conversation.
type agent struct {
	binding  *binding
	plays    *binding // of the driver that was asked for
	driver   string
	work     *workload
	options  options
	players  []*player
	control  control
	said     map[string]bool
	totals   map[uint32]total
	deadline *time.Timer
	progress *time.Ticker
	watch    *watch
	applied  map[string]any
}

func (a *agent) once(event string, more fields) {
	if !a.said[event] {
		a.said[event] = true
		say(event, more)
	}
}

func (a *agent) hear(c *command) {
	if a.work == nil && slices.Contains([]string{"start", "crash", "drain", "stop"}, c.Type) {
		fatal("prepare comes before %s", c.Type)
	}
	switch c.Type {
	case "hello":
		a.hello(c)
	case "prepare":
		a.prepare(c)
	case "start":
		if c.At <= nanotime() {
			message := fmt.Sprintf("the start has passed by %d ns", nanotime()-c.At)
			end(fields{"message": message, "fatal": true, "too_late": true})
		}
		a.control.start.Store(c.At)
		a.watch = &watch{ended: make(chan struct{})}
		go a.watch.run(newWindow(a.work, c.At))
		a.progress.Reset(time.Second)
	case "crash":
		a.control.end.CompareAndSwap(0, 1)
		a.interrupt()
	case "drain":
		a.totals = map[uint32]total{}
		for _, t := range c.Publishers {
			a.totals[t.Publisher] = t
		}
		a.deadline.Reset(time.Duration(max(1, c.Deadline-nanotime())))
		a.control.drains.Store(true)
	case "stop":
		a.result()
	case "exit":
		os.Exit(0)
	default:
		say("error", fields{"message": "no such command: " + c.Type, "fatal": false})
	}
}

func (a *agent) hello(c *command) {
	if c.Protocol != 2 {
		fatal("this agent speaks version 2 of the protocol, and was asked for %d", c.Protocol)
	}
	versions := a.binding.versions()
	say("hello", fields{
		"protocol": 2, "name": "zeromq-go", "version": agentVersion, "pid": os.Getpid(), "drivers": a.binding.drivers,
		"clock_ns": nanotime(), "options": a.binding.known,
		"versions": fields{"go": runtime.Version(), "binding": a.binding.made["binding"], "library": strings.TrimSpace(versions["library"] + " " + versions["version"])},
		"features": fields{
			"patterns": a.binding.patterns, "transports": a.binding.transports, "arrivals": []string{"uniform", "poisson", "burst"},
			"verification": []string{"header", "full"}, "pacing": []string{"sleep", "hybrid", "spin"},
			"profiles": []string{"constant", "max"}, "flows": 1, "pauses": true, "crash": true, "clock_offset": true,
		},
	})
}

func (a *agent) prepare(c *command) {
	if !slices.Contains(a.binding.drivers, c.Driver) {
		fatal("there is no driver %s here: %s", c.Driver, strings.Join(a.binding.drivers, ", "))
	}
	if len(c.Flows) != 1 {
		fatal("this agent plays one flow at a time, not %d", len(c.Flows))
	}
	a.plays, a.driver, a.work, a.options = a.binding, c.Driver, c.Flows[0].Workload, c.Options
	if c.Driver == "null" {
		a.plays = bindings["null"]
	}
	a.work.resolve()
	a.work.ahead = c.ClockOffset
	if err := a.plays.check(a.driver, a.work, a.options); err != nil {
		fatal("%v", err)
	}
	// Who binds comes first: within a process nobody can connect to what is not there.
	sort.SliceStable(c.Clients, func(i, j int) bool { return c.Clients[i].Bind != "" && c.Clients[j].Bind == "" })
	sending := 0
	for _, client := range c.Clients {
		if client.Role == "publisher" || client.Role == "requester" {
			sending++
		}
	}
	bound := []fields{}
	for _, one := range c.Clients {
		o := order{kindOf(one.Role, a.work, a.options), a.work, a.options, one.Bind, one.Connect}
		s, err := a.plays.open(o)
		if err != nil {
			fatal("%s %d: %v", one.Role, one.ID, err)
		}
		for name, value := range a.plays.applied(o, s) {
			a.applied[name] = value
		}
		if one.Bind != "" {
			bound = append(bound, fields{"role": one.Role, "id": one.ID, "endpoint": s.endpoint()})
		}
		p := &player{role: one.Role, id: one.ID, work: a.work, socket: s, control: &a.control, ended: make(chan struct{})}
		p.budget = c.SpinCores / float64(max(1, sending))
		p.cpus = c.SubscriberCPUs
		switch one.Role {
		case "publisher":
			p.cpus = c.PublisherCPUs
		case "requester":
			p.cpus, p.in = c.PublisherCPUs, newIncoming(a.work, one.ID, 1)
		case "subscriber":
			p.in = newIncoming(a.work, one.First, one.Count)
		}
		a.players = append(a.players, p)
	}
	debug.FreeOSMemory() // what preparing took is collected before it can disturb
	say("bound", fields{"endpoints": bound})
	for _, p := range a.players {
		go p.run()
	}
}

// interrupt ends waits that would not end by themselves.
func (a *agent) interrupt() {
	for _, p := range a.players {
		p.socket.interrupt()
	}
}

// look says what has become true.
func (a *agent) look(deadline bool) {
	ready, sends, sent, drained := a.players != nil, false, true, true
	for _, p := range a.players {
		switch p.role {
		case "publisher", "requester":
			sends, sent = true, sent && p.hasSent.Load()
			ready = ready && p.isReady.Load()
		case "subscriber":
			ready = ready && p.in.heardAll()
			drained = drained && (a.control.end.Load() == 1 || a.totals != nil && p.in.complete(a.totals))
		default:
			ready = ready && p.isReady.Load()
		}
	}
	if a.said["result"] {
		return
	}
	if ready {
		a.once("ready", nil)
	}
	if sends && sent {
		a.once("sent", fields{"publishers": a.sent()})
	}
	if a.totals != nil && (drained || deadline) {
		a.once("drained", nil)
	}
}

func (a *agent) sent() []total {
	totals := []total{}
	for _, p := range a.players {
		if p.role == "publisher" || p.role == "requester" {
			t := total{Publisher: p.id}
			if p.out != nil {
				t = p.out.total
			}
			totals = append(totals, t)
		}
	}
	return totals
}

func (a *agent) tell() {
	var sent, received uint64
	var lag int64
	for _, p := range a.players {
		if out := p.sending.Load(); out != nil {
			sent, lag = sent+out.sent.Load(), max(lag, out.lagMax.Swap(0))
		}
		if p.in != nil && p.role == "subscriber" {
			received += p.in.received()
		}
	}
	said := fields{"sent": sent, "received": received}
	if sent > 0 && a.work.perKs > 0 {
		said["own_lag_max_ns"] = lag
	}
	say("progress", said)
}

func (a *agent) run(lines <-chan []byte) {
	for {
		select {
		case line := <-lines:
			var c command
			if err := json.Unmarshal(line, &c); err != nil {
				say("error", fields{"message": fmt.Sprintf("this is no command: %v", err), "fatal": false})
				continue
			}
			a.hear(&c)
			a.look(false)
		case <-a.control.changed:
			a.look(false)
		case <-a.deadline.C:
			a.look(true)
		case <-a.progress.C:
			if a.control.start.Load() > 0 && !a.said["result"] && nanotime() >= a.control.start.Load() {
				a.tell()
			}
		}
	}
}

func main() {
	real, err := unix.Dup(1)
	if err == nil {
		err = unix.Dup2(2, 1)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "zeromq-go: no standard output:", err)
		os.Exit(1)
	}
	protocol = os.NewFile(uintptr(real), "protocol")
	if len(os.Args) != 3 || os.Args[1] != "--binding" || bindings[os.Args[2]] == nil {
		var names []string
		for name := range bindings {
			names = append(names, name)
		}
		sort.Strings(names)
		fmt.Fprintf(os.Stderr, "zeromq-go: usage: zeromq-go --binding %s (pebbe: in what `make` builds with cgo, where libzmq3-dev is)\n", strings.Join(names, "|"))
		os.Exit(2)
	}
	lines := make(chan []byte)
	go func() {
		for input := bufio.NewReaderSize(os.Stdin, 1<<16); ; {
			line, err := input.ReadBytes('\n')
			if len(line) > 0 {
				lines <- line
			}
			if err != nil {
				orphaned()
			}
		}
	}()
	a := &agent{binding: bindings[os.Args[2]], said: map[string]bool{}, applied: map[string]any{}}
	a.control.changed = make(chan struct{}, 1)
	a.deadline, a.progress = time.NewTimer(time.Hour*24*365), time.NewTicker(time.Second)
	a.run(lines)
}
