package main

import (
	"runtime"
	"slices"
	"time"
)

// result ends all clients, and says what they measured.
func (a *agent) result() {
	a.control.end.Store(2)
	a.interrupt()
	remarks, late := []string{}, time.After(5*time.Second)
	for _, p := range a.players {
		select {
		case <-p.ended:
		case <-late:
			fatal("%s %d does not come back from a call of the library", p.role, p.id)
		}
	}
	flow := fields{"publishers": a.sent()}
	var books ledger
	var arrived, pairs uint64
	var jitter, spent, budget float64
	var firstSent, last, margin int64
	var stalls silence
	var sent, delivered []uint64
	seen, times := []fields{}, map[string][]*histogram{}
	bySlice := [][]*histogram{}
	win := &window{}
	if at := a.control.start.Load(); at > 0 {
		win = newWindow(a.work, at)
	}
	for _, p := range a.players {
		if out := p.out; out != nil {
			if out.firstSent > 0 && (firstSent == 0 || out.firstSent < firstSent) {
				firstSent = out.firstSent
			}
			sent = sum(sent, out.slices)
			collect(times, "send_lag", out.sendLag)
			collect(times, "own_lag", out.ownLag)
			if out.schedule != nil {
				spent += float64(p.pacer.spent) / float64(win.to-win.from)
				budget += p.budget
				margin = max(margin, p.pacer.margin())
			}
			if out.sequence >= out.most {
				remarks = append(remarks, "a publisher stopped where no more messages can be accounted for")
			}
		}
		in := p.in
		if in == nil || in.window == nil {
			continue
		}
		totals := a.totals
		if p.role == "requester" {
			totals = map[uint32]total{p.id: p.out.total}
		}
		in.close(totals, p.killed)
		books.add(in.ledger)
		arrived, last = arrived+in.arrived, max(last, in.last)
		jitter, pairs = jitter+in.jitter, pairs+in.jitterPairs
		stalls.add(in.stalls.Count, in.stalls.Longest, in.stalls.LongestAt)
		delivered = sum(delivered, in.slices)
		collect(times, "latency", in.latency)
		collect(times, "intended_latency", in.intended)
		collect(times, "service_latency", in.service)
		if p.role == "subscriber" {
			collect(times, "receive_lag", in.receiveLag)
		}
		for at, h := range in.sliceLatency {
			if len(bySlice) <= at {
				bySlice = append(bySlice, nil)
			}
			bySlice[at] = append(bySlice[at], h)
		}
		for i := range in.streams {
			if a.work.competing() {
				seen = append(seen, fields{"publisher": in.first + uint32(i), "bits": in.streams[i].bits()})
			}
		}
	}
	histograms, latency := fields{}, [][][2]uint64{}
	for _, name := range []string{"latency", "intended_latency", "service_latency", "send_lag", "own_lag", "receive_lag"} {
		histograms[name] = merged(times[name])
	}
	for _, one := range bySlice {
		latency = append(latency, merged(one))
	}
	if win.open() {
		sent, delivered = trimmed(sent), trimmed(delivered)
	}
	flow["ledger"], flow["arrived"], flow["histograms"] = books, arrived, histograms
	flow["first_sent_ns"], flow["last_arrival_ns"] = orNull(firstSent), orNull(last)
	flow["jitter_sum_ns"], flow["jitter_pairs"], flow["stalls"], flow["seen"] = jitter, pairs, stalls, seen
	flow["series"] = fields{"slice_ns": win.slice, "sent": orEmpty(sent), "delivered": orEmpty(delivered), "latency": latency}
	if budget > 0 || spent > 0 {
		if a.work.Pacing == "spin" {
			margin = 0
		}
		flow["pacing"] = fields{"budget_cores": budget, "spent_cores": spent, "margin_ns": margin}
	}
	if a.watch == nil {
		a.watch = &watch{ended: make(chan struct{})}
		a.watch.stop.Store(true)
		go a.watch.run(&window{nanotime(), nanotime(), forever, second, 1})
	}
	a.watch.stop.Store(true)
	<-a.watch.ended
	versions := a.plays.versions()
	versions["binding"], versions["runtime"] = a.plays.made["binding"], runtime.Version()
	for name, otherwise := range map[string]string{"idiom": a.plays.idiom, "request_reply": "req-rep", "pairs": "pub-sub"} {
		if slices.Contains(a.plays.known[a.driver], name) {
			a.applied[name] = a.options.text(name, otherwise)
		}
	}
	if a.work.Transport == "tcp" {
		a.applied["tcp_nodelay"] = true
	}
	a.once("result", fields{
		"flows": []fields{flow}, "usage": a.watch.usage, "versions": versions, "applied": a.applied, "loops": len(a.players),
		"pauses": a.watch.pauses, "runtime": a.watch.runtime, "made": a.made(), "remarks": remarks,
	})
}

// made says how the binding is made.
func (a *agent) made() map[string]string {
	made := map[string]string{
		"language": "Go", "runtime": runtime.Version(), "call": "blocking", "memory": "garbage collected",
		"build": "go build", "flags": flags(),
	}
	for name, text := range a.plays.made {
		made[name] = text
	}
	return made
}

func collect(times map[string][]*histogram, name string, h *histogram) {
	if h != nil {
		times[name] = append(times[name], h)
	}
}

func sum(all, more []uint64) []uint64 {
	for at, count := range more {
		if len(all) <= at {
			all = append(all, 0)
		}
		all[at] += count
	}
	return all
}

func trimmed(counts []uint64) []uint64 {
	for len(counts) > 0 && counts[len(counts)-1] == 0 {
		counts = counts[:len(counts)-1]
	}
	return counts
}

func orNull(instant int64) any {
	if instant == 0 {
		return nil
	}
	return instant
}

func orEmpty(counts []uint64) []uint64 {
	if counts == nil {
		return []uint64{}
	}
	return counts
}
