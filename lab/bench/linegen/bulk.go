package main

import (
	"flag"
	"io"
	"sync/atomic"
	"time"
)

// flow is one download.
type flow struct {
	got atomic.Int64
}

// flows are downloads that go on until the program ends.
type flows struct {
	each  []*flow
	total atomic.Int64
	errs  atomic.Int64
	over  atomic.Bool
}

func startFlows(r *road, n int, onTotal func(int64)) *flows {
	all := &flows{}
	for range n {
		one := &flow{}
		all.each = append(all.each, one)
		go all.run(r, one, onTotal)
	}
	return all
}

func (all *flows) run(r *road, one *flow, onTotal func(int64)) {
	c, err := r.download()
	if err != nil {
		all.errs.Add(1)
		return
	}
	defer c.Close()
	buf := make([]byte, 1<<18)
	for !all.over.Load() {
		// A flow that has got nothing for so long is stuck, and an error.
		c.SetReadDeadline(time.Now().Add(15 * time.Second))
		n, err := c.Read(buf)
		one.got.Add(int64(n))
		onTotal(all.total.Add(int64(n)))
		if err != nil {
			if !all.over.Load() {
				all.errs.Add(1)
			}
			return
		}
	}
}

// end counts a flow that has got nothing as an error.
func (all *flows) end() (slowest, fastest int64) {
	all.over.Store(true)
	slowest = all.each[0].got.Load()
	for _, one := range all.each {
		got := one.got.Load()
		slowest, fastest = min(slowest, got), max(fastest, got)
		if got == 0 {
			all.errs.Add(1)
		}
	}
	return
}

// bulk: how long until -mb came over -n downloads together. None of them has an
// end of its own, so that the slowest does not run alone for a while.
func bulk(args []string) map[string]any {
	f := flag.NewFlagSet("bulk", flag.ExitOnError)
	var r road
	r.flags(f)
	n := f.Int("n", 16, "connections")
	mb := f.Int64("mb", 200, "MB over all of them")
	limit := f.Duration("limit", 60*time.Second, "give up after")
	f.Parse(args)
	wanted := *mb * 1e6
	reached := make(chan time.Time, 1)
	start := time.Now()
	all := startFlows(&r, *n, func(total int64) {
		if total >= wanted {
			select {
			case reached <- time.Now():
			default:
			}
		}
	})
	result := map[string]any{"n": *n, "wanted": wanted, "bytes": wanted}
	select {
	case at := <-reached:
		result["mbit"] = round(float64(wanted) * 8 / 1e6 / at.Sub(start).Seconds())
	case <-time.After(*limit):
		result["bytes"] = all.total.Load()
	}
	slowest, fastest := all.end()
	if fastest > 0 {
		result["slowest_of_fastest"] = round(float64(slowest) / float64(fastest))
	}
	result["errs"] = all.errs.Load()
	return result
}

// beside: small requests on one connection while -n downloads run.
func beside(args []string) map[string]any {
	f := flag.NewFlagSet("beside", flag.ExitOnError)
	var r road
	r.flags(f)
	n := f.Int("n", 4, "downloads")
	warm := f.Duration("warm", 3*time.Second, "downloads alone at first")
	length := f.Duration("d", 10*time.Second, "requests for so long")
	request := f.Int("req", 128, "octets")
	response := f.Int("resp", 1024, "octets")
	f.Parse(args)
	result := map[string]any{"n": *n, "errs": 1}
	c, err := r.echo(*request, *response)
	if err != nil {
		result["first_err"] = err.Error()
		return result
	}
	defer c.Close()
	all := startFlows(&r, *n, func(int64) {})
	time.Sleep(*warm)
	before, start := all.total.Load(), time.Now()
	var times []float64
	for time.Since(start) < *length {
		asked := time.Now()
		c.SetDeadline(asked.Add(10 * time.Second))
		if _, err := c.Write(make([]byte, *request)); err != nil {
			all.errs.Add(1)
			break
		}
		if _, err := io.ReadFull(c, make([]byte, *response)); err != nil {
			all.errs.Add(1)
			break
		}
		times = append(times, float64(time.Since(asked).Microseconds())/1000)
	}
	moved, seconds := all.total.Load()-before, time.Since(start).Seconds()
	spread(result, times)
	result["bulkMbit"] = round(float64(moved) * 8 / 1e6 / seconds)
	all.end()
	result["errs"] = all.errs.Load()
	return result
}
