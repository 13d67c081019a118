package load

import (
	"encoding/binary"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

const requestTimeout = 10 * time.Second

// latencies in microseconds.
type latencies []float64

func (l latencies) at(quantile float64) float64 {
	return l[min(len(l)-1, int(float64(len(l))*quantile))]
}

// A caller asks one connection again and again.
type caller struct {
	conn    net.Conn
	request []byte
	answer  []byte
	asked   bool
}

func (r *run) newCaller() (*caller, error) {
	c, err := r.dial()
	if err != nil {
		return nil, err
	}
	return &caller{conn: c, request: make([]byte, r.req), answer: make([]byte, r.resp)}, nil
}

func (c *caller) call() (microseconds float64, err error) {
	request := c.request
	if !c.asked {
		c.asked = true
		head := []byte{'E', 0, 0, 0, 0, 0, 0, 0, 0}
		binary.BigEndian.PutUint32(head[1:], uint32(len(c.request)))
		binary.BigEndian.PutUint32(head[5:], uint32(len(c.answer)))
		request = append(head, request...)
	}
	begin := time.Now()
	if _, err = c.conn.Write(request); err == nil {
		_, err = io.ReadFull(c.conn, c.answer)
	}
	return float64(time.Since(begin).Nanoseconds()) / 1000, err
}

// once dials, asks, hears and closes.
func (r *run) once() error {
	c, err := r.newCaller()
	if err != nil {
		return err
	}
	defer c.conn.Close()
	c.conn.SetDeadline(time.Now().Add(requestTimeout))
	_, err = c.call()
	return err
}

// requests asks over connections that stay, all open before the first one begins.
func requests(r *run) {
	callers := make([]*caller, r.n)
	for i := range callers {
		c, err := r.newCaller()
		if err != nil {
			r.failed(err)
			return
		}
		defer c.conn.Close()
		callers[i] = c
	}
	if r.stall > 0 {
		besideStalled(r, callers)
		return
	}
	r.measure(func(stop time.Time) latencies { return r.askAll(callers, stop) })
}

// askAll has every caller ask until then.
func (r *run) askAll(callers []*caller, stop time.Time) (all latencies) {
	var wg sync.WaitGroup
	for _, c := range callers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			c.conn.SetDeadline(stop.Add(requestTimeout))
			var own latencies
			for time.Now().Before(stop) {
				took, err := c.call()
				if err != nil {
					r.failed(err)
					break
				}
				own = append(own, took)
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			all = append(all, own...)
		}()
	}
	wg.Wait()
	return all
}

// connections makes a new one for each request, n at a time.
func connections(r *run) {
	r.measure(func(stop time.Time) (all latencies) {
		var wg sync.WaitGroup
		for range r.n {
			wg.Add(1)
			go func() {
				defer wg.Done()
				var own latencies
				for time.Now().Before(stop) {
					begin := time.Now()
					if err := r.once(); err != nil {
						r.failed(err)
						time.Sleep(10 * time.Millisecond)
						continue
					}
					own = append(own, float64(time.Since(begin).Nanoseconds())/1000)
				}
				r.mu.Lock()
				defer r.mu.Unlock()
				all = append(all, own...)
			}()
		}
		wg.Wait()
		return all
	})
}

// measure reports the latencies that load gives, its rate, and what the tunnel used for it.
func (r *run) measure(load func(stop time.Time) latencies) {
	before := usageOf(r.pids)
	begin := time.Now()
	l := load(begin.Add(r.duration))
	elapsed := time.Since(begin).Seconds()
	after := usageOf(r.pids)
	r.result["count"] = len(l)
	r.result["per_s"] = r4(float64(len(l)) / elapsed)
	if len(l) == 0 {
		return
	}
	r.report(l, "")
	if cpu, isWatched := r.cpuSince(before, after); isWatched {
		r.result["cpu_ms_per_1k"] = r4(cpu * 1e6 / float64(len(l)))
		r.result["rssMB"] = after.rssMiB()
	}
}

func (r *run) report(l latencies, prefix string) {
	slices.Sort(l)
	r.result[prefix+"p50us"] = r4(l.at(0.5))
	r.result[prefix+"p99us"] = r4(l.at(0.99))
	r.result[prefix+"p999us"] = r4(l.at(0.999))
}
