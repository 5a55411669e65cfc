package main

import (
	"bytes"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

type reading struct {
	At          int64 `json:"at_ns"`
	CPU         int64 `json:"cpu_ns"`
	User        int64 `json:"user_ns"`
	Voluntary   int64 `json:"voluntary_switches"`
	Involuntary int64 `json:"involuntary_switches"`
	Samples     int   `json:"samples"`
}

func snapshot(samples int) reading {
	var cpu unix.Timespec
	var used unix.Rusage
	_ = unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &cpu)
	_ = unix.Getrusage(unix.RUSAGE_SELF, &used)
	user, system := used.Utime.Nano(), used.Stime.Nano()
	// The kernel estimates the parts; the sum is exact.
	share := int64(float64(cpu.Nano()) * float64(user) / float64(max(1, user+system)))
	return reading{nanotime(), cpu.Nano(), share, used.Nvcsw, used.Nivcsw, samples}
}

func (r reading) since(b reading) reading {
	return reading{r.At, r.CPU - b.CPU, max(0, r.User-b.User), r.Voluntary - b.Voluntary, r.Involuntary - b.Involuntary, r.Samples}
}

func memory() (rss, uss int64) {
	text, _ := os.ReadFile("/proc/self/smaps_rollup")
	for _, line := range bytes.Split(text, []byte("\n")) {
		fields := bytes.Fields(line)
		if len(fields) < 2 {
			continue
		}
		kib, _ := strconv.ParseInt(string(fields[1]), 10, 64)
		switch string(fields[0]) {
		case "Rss:":
			rss = kib << 10
		case "Private_Clean:", "Private_Dirty:":
			uss += kib << 10
		}
	}
	return rss, uss
}

// collections are the stops of the garbage collector, by its own word.
type collections struct {
	Count     int64 `json:"count"`
	Total     int64 `json:"total_ns"`
	Longest   int64 `json:"longest_ns"`
	LongestAt int64 `json:"longest_at_ns"`
	seen      int64
	stats     debug.GCStats // kept, so that looking makes no garbage
}

// note enters those since the last look: the runtime keeps the last 256.
func (c *collections) note(from int64) {
	stats := &c.stats
	debug.ReadGCStats(stats)
	wall := time.Now().UnixNano() - nanotime()
	for i := int64(0); i < min(stats.NumGC-c.seen, int64(len(stats.Pause))); i++ {
		length := stats.Pause[i].Nanoseconds()
		if at := stats.PauseEnd[i].UnixNano() - wall - length - from; at >= 0 {
			c.Count++
			c.Total += length
			if length > c.Longest {
				c.Longest, c.LongestAt = length, at
			}
		}
	}
	c.seen = stats.NumGC
}

func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// watch looks at the process over the window: what it uses, and where it stood still.
type watch struct {
	usage   map[string]any
	pauses  silence
	runtime map[string]any
	stop    atomic.Bool
	ended   chan struct{}
}

func (w *watch) run(win *window) {
	var began reading
	var rss, uss []int64
	var allocatedBefore uint64
	course, gc, sampleAt := []reading{}, collections{}, win.from
	for woke, inWindow := nanotime(), false; ; {
		until := min(woke+nap, win.to)
		if !inWindow {
			until = min(woke+nap, win.from)
		}
		time.Sleep(time.Duration(until - nanotime()))
		before := woke
		woke = nanotime()
		if gap := min(woke, win.to) - max(before, win.from); gap >= 3*nap {
			w.pauses.add(1, gap-nap, max(before, win.from)-win.from)
		}
		over := w.stop.Load() || woke >= win.to
		if !inWindow && (woke >= win.from || over) {
			inWindow, began, allocatedBefore = true, snapshot(0), allocated()
			gc.note(forever / 2) // those before the window
			sampleAt = began.At + min(250*millisecond, win.to-win.from)/4
			course = append(course, began.since(began))
		}
		if inWindow {
			gc.note(win.from)
			if woke >= sampleAt || over && len(rss) == 0 {
				resident, unique := memory()
				rss, uss = append(rss, resident), append(uss, unique)
				sampleAt = woke + second
				if len(rss) < 4 {
					sampleAt = woke + 250*millisecond
				}
			}
			if win.open() {
				course = append(course, snapshot(len(rss)).since(began))
			}
		}
		if over {
			break
		}
	}
	ended := snapshot(len(rss))
	used := ended.since(began)
	w.usage = map[string]any{"wall_ns": ended.At - began.At, "cpu_ns": used.CPU, "user_ns": used.User,
		"voluntary_switches": used.Voluntary, "involuntary_switches": used.Involuntary, "rss_bytes": rss, "uss_bytes": uss}
	if win.open() {
		w.usage["course"] = course
	}
	w.runtime = map[string]any{"pauses": gc, "collections": gc.Count, "allocated_bytes": allocated() - allocatedBefore}
	close(w.ended)
}
