package load

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

const bulkTimeout = 120 * time.Second

// bulk moves the same number of octets over each connection; all are open before the first one begins.
func bulk(r *run) {
	per := int64(r.gb * 1e9 / float64(r.n))
	r.result["wanted"] = per * int64(r.n)
	conns := make([]net.Conn, r.n)
	for i := range conns {
		c, err := r.dial()
		if err != nil {
			r.failed(err)
			return
		}
		defer c.Close()
		conns[i] = c
	}
	one := download
	if r.mode == "up" {
		one = upload
	}
	before := usageOf(r.pids)
	begin := time.Now()
	var wg sync.WaitGroup
	var total int64
	var quickest, slowest time.Duration
	for _, c := range conns {
		wg.Add(1)
		go func() {
			defer wg.Done()
			c.SetDeadline(begin.Add(bulkTimeout))
			moved, err := one(c, per)
			took := time.Since(begin)
			if err != nil {
				r.failed(err)
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			total += moved
			slowest = max(slowest, took)
			if quickest == 0 || took < quickest {
				quickest = took
			}
		}()
	}
	wg.Wait()
	elapsed := time.Since(begin).Seconds()
	after := usageOf(r.pids)
	gb := float64(total) / 1e9
	r.result["bytes"] = total
	r.result["gbps"] = r4(gb * 8 / elapsed)
	// The same octets each, so rates are to each other as times are, the other way round.
	r.result["slowest_fastest"] = r4(quickest.Seconds() / slowest.Seconds())
	if cpu, isWatched := r.cpuSince(before, after); isWatched && total > 0 {
		r.result["cpu_s_per_GB"] = r4(cpu / gb)
		r.result["sys_frac"] = r4((after.system - before.system) / cpu)
		r.result["rssMB"] = after.rssMiB()
	}
	if r.settle > 0 && len(r.pids) > 0 {
		time.Sleep(r.settle)
		r.result["rss_later_MB"] = usageOf(r.pids).rssMiB()
	}
}

func download(c net.Conn, octets int64) (int64, error) {
	if err := ask(c, 'D', octets); err != nil {
		return 0, err
	}
	// No ReaderFrom or WriterTo: every kind of connection is to be read the same way.
	return io.CopyBuffer(struct{ io.Writer }{io.Discard}, io.LimitReader(struct{ io.Reader }{c}, octets), make([]byte, 1<<18))
}

// upload gives what the target says to have got.
func upload(c net.Conn, octets int64) (int64, error) {
	if err := ask(c, 'L', octets); err != nil {
		return 0, err
	}
	buffer := make([]byte, 1<<18)
	for left := octets; left > 0; {
		n, err := c.Write(buffer[:min(left, int64(len(buffer)))])
		left -= int64(n)
		if err != nil {
			return 0, err
		}
	}
	var answer [8]byte
	if _, err := io.ReadFull(c, answer[:]); err != nil {
		return 0, fmt.Errorf("the target's count: %w", err)
	}
	return int64(binary.BigEndian.Uint64(answer[:])), nil
}

func ask(c net.Conn, what byte, n int64) error {
	var head [9]byte
	head[0] = what
	binary.BigEndian.PutUint64(head[1:], uint64(n))
	_, err := c.Write(head[:])
	return err
}
