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
	for range stallPhases {
		free = append(free, r.askAll(callers, time.Now().Add(phase))...)
		stalled := r.openStalled(r.stall)
		time.Sleep(stallSettle)
		beside = append(beside, r.askAll(callers, time.Now().Add(phase))...)
		for _, c := range stalled {
			abort(c)
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
}

// pinned reports what each further stalled connection makes the tunnel's memory grow by. The first ones are not counted: with them
// grows what every load needs, and the garbage of what passed until they were stuck.
func pinned(r *run) {
	first := r.openStalled(r.n / 4)
	time.Sleep(2 * stallSettle)
	before := usageOf(r.pids)
	conns := append(first, r.openStalled(r.n)...)
	time.Sleep(2 * stallSettle)
	after := usageOf(r.pids)
	r.result["rss0MB"], r.result["rss1MB"] = before.rssMiB(), after.rssMiB()
	r.result["KB_per_stalled"] = r4(float64(after.rss-before.rss) / 1024 / float64(r.n))
	for _, c := range conns {
		abort(c)
	}
}

// openStalled gives downloads that nobody reads, or uploads to a target that does not.
func (r *run) openStalled(n int) (conns []net.Conn) {
	for range n {
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

// abort closes a connection that may be stuck in a write.
func abort(c net.Conn) {
	if it, isStuck := c.(interface{ Abort() }); isStuck {
		it.Abort()
		return
	}
	c.Close()
}
