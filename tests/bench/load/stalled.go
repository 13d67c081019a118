package load

import (
	"net"
	"time"
)

// A stalled connection is left alone this long, so that every window on its way fills.
const stallSettle = 1500 * time.Millisecond

const stallPhases = 2

// besideStalled asks without and with stalled connections in turns, so that what slows the machine slows both.
func besideStalled(r *run, callers []*caller) {
	var free, beside latencies
	phase := r.duration / (2 * stallPhases)
	var pinned int64
	for i := range stallPhases {
		free = append(free, r.askAll(callers, time.Now().Add(phase))...)
		before := usageOf(r.pids)
		stalled := r.openStalled()
		time.Sleep(stallSettle)
		if i == 0 {
			// Before the next load, whose own garbage would count.
			pinned = usageOf(r.pids).rss - before.rss
		}
		beside = append(beside, r.askAll(callers, time.Now().Add(phase))...)
		for _, c := range stalled {
			c.Close()
		}
		time.Sleep(stallSettle / 5)
	}
	r.result["stall"] = r.stall
	r.result["count"] = len(free) + len(beside)
	if len(free) == 0 || len(beside) == 0 {
		return
	}
	r.report(free, "free_")
	r.report(beside, "")
	r.result["stall_ratio"] = r4(beside.at(0.99) / free.at(0.99))
	if len(r.pids) > 0 {
		r.result["KB_per_stalled"] = r4(float64(pinned) / 1024 / float64(r.stall))
	}
}

// openStalled gives downloads that nobody reads, or uploads to a target that does not.
func (r *run) openStalled() (conns []net.Conn) {
	for range r.stall {
		c, err := r.dial()
		if err != nil {
			r.failed(err)
			return
		}
		conns = append(conns, c)
		if r.stallSide == "client" {
			if err := ask(c, 'D', 1<<40); err != nil {
				r.failed(err)
			}
			continue
		}
		go func() {
			c.Write([]byte{'S'})
			buffer := make([]byte, 1<<16)
			// Ends when the connection is closed: until then it is to be stuck.
			for err := error(nil); err == nil; {
				_, err = c.Write(buffer)
			}
		}()
	}
	return conns
}
