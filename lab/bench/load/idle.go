package load

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

const (
	openersAtOnce = 64
	// Memory is given back within some seconds, which is work.
	idleSettle      = 10 * time.Second
	idleWatch       = 5 * time.Second
	closeTimeout    = 30 * time.Second
	idleOpenTimeout = 20 * time.Second
	// What counts as "memory is back", relative to before.
	memoryBackMax = 1.2
)

// idle opens connections that carry one octet and then nothing, watches, and closes them all at once.
func idle(r *run) {
	// What starting up has left behind is no measure of what connections add.
	time.Sleep(idleSettle)
	r.before = usageOf(r.pids)
	begin := time.Now()
	conns := r.openIdle()
	r.result["open_s"] = r4(time.Since(begin).Seconds())
	time.Sleep(idleSettle)
	settled := usageOf(r.pids)
	r.result["ok"] = len(conns)
	if len(conns) == 0 {
		return
	}
	if len(r.pids) > 0 {
		r.result["rss0MB"] = r.before.rssMiB()
		r.result["rss1MB"] = settled.rssMiB()
		r.result["KB_per_conn"] = r4(float64(settled.rss-r.before.rss) / 1024 / float64(len(conns)))
	}
	before, watch := usageOf(r.pids), time.Now()
	time.Sleep(idleWatch)
	if cpu, isWatched := r.cpuSince(before, usageOf(r.pids)); isWatched {
		r.result["idle_cpu_pct"] = r4(cpu / time.Since(watch).Seconds() * 100)
	}
	r.closeIdle(conns)
	r.watchMemory()
}

func (r *run) openIdle() (conns []net.Conn) {
	slots := make(chan struct{}, openersAtOnce)
	var wg sync.WaitGroup
	for range r.n {
		wg.Add(1)
		slots <- struct{}{}
		go func() {
			defer func() { <-slots; wg.Done() }()
			c, err := r.dial()
			if err != nil {
				r.failed(err)
				return
			}
			c.SetDeadline(time.Now().Add(idleOpenTimeout))
			c.Write([]byte{'I'})
			var b [1]byte
			if _, err := io.ReadFull(c, b[:]); err != nil {
				r.failed(err)
				c.Close()
				return
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			conns = append(conns, c)
		}()
	}
	wg.Wait()
	return conns
}

// closeIdle reports how long it takes from the first close until the target has seen the last one.
func (r *run) closeIdle(conns []net.Conn) {
	begin := time.Now()
	for _, c := range conns {
		c.Close()
	}
	if r.target == "" {
		return
	}
	for time.Since(begin) < closeTimeout {
		open, err := askIdling(r.target)
		if err != nil {
			r.failed(err)
			return
		}
		if open == 0 {
			r.result["close_s"] = r4(time.Since(begin).Seconds())
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	r.failed(errors.New("the target still has connections after " + closeTimeout.String()))
}

// askIdling asks the target itself how many connections idle there.
func askIdling(address string) (int64, error) {
	c, err := DialPort(address)()
	if err != nil {
		return 0, err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(requestTimeout))
	var answer [8]byte
	if _, err := c.Write([]byte{'N'}); err != nil {
		return 0, err
	}
	if _, err := io.ReadFull(c, answer[:]); err != nil {
		return 0, err
	}
	return int64(binary.BigEndian.Uint64(answer[:])), nil
}

// watchMemory waits for the memory to come back, as long as it may take, and reports how much is still kept.
func (r *run) watchMemory() {
	if r.settle == 0 || len(r.pids) == 0 {
		return
	}
	begin := time.Now()
	for {
		now := usageOf(r.pids)
		isBack := float64(now.rss) <= float64(r.before.rss)*memoryBackMax
		if isBack || time.Since(begin) >= r.settle {
			r.result["rss_back_s"] = r4(time.Since(begin).Seconds())
			r.result["rss_back_pct"] = r4((float64(now.rss)/float64(r.before.rss) - 1) * 100)
			return
		}
		time.Sleep(time.Second)
	}
}
