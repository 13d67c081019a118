package main

import (
	"flag"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	hello   = 'H' // the target answers it, in either kind
	load    = 'L'
	buffers = 4 << 20 // octets; the sockets of the generator are to lose nothing
)

// datagrams is both ends of the load: the target that the tunnel leads to, and
// callers of the port that leads there. In one program, so that what arrived is
// known without asking through what is measured.
type datagrams struct {
	size     int
	isEcho   bool
	callers  []*net.UDPConn
	sent     atomic.Int64
	arrived  atomic.Int64 // at the target
	answered atomic.Int64 // back at the callers
}

func listenUDP(address string) (*net.UDPConn, error) {
	a, err := net.ResolveUDPAddr("udp4", address)
	if err != nil {
		return nil, err
	}
	c, err := net.ListenUDP("udp4", a)
	if err == nil {
		c.SetReadBuffer(buffers)
		c.SetWriteBuffer(buffers)
	}
	return c, err
}

func (d *datagrams) serve(target *net.UDPConn) {
	buf := make([]byte, 1<<16)
	for {
		n, from, err := target.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		if buf[0] == load && n == d.size {
			d.arrived.Add(1)
		}
		if buf[0] == hello || d.isEcho {
			target.WriteToUDPAddrPort(buf[:n], from)
		}
	}
}

// greet makes the tunnel open a flow for each caller; false when one is mute.
func (d *datagrams) greet() bool {
	for _, c := range d.callers {
		answered := false
		for attempt := 0; attempt < 20 && !answered; attempt++ {
			c.Write([]byte{hello})
			c.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
			n, err := c.Read(make([]byte, 16))
			answered = err == nil && n == 1
		}
		if !answered {
			return false
		}
		// Answers to attempts that were thought lost must not count later.
		c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		for {
			if _, err := c.Read(make([]byte, 16)); err != nil {
				break
			}
		}
		c.SetReadDeadline(time.Time{})
	}
	return true
}

// closedLoop keeps `outstanding` requests of each caller under way. What is
// not answered in 250 ms counts as lost and is asked again.
func (d *datagrams) closedLoop(outstanding int, length time.Duration) (perSecond float64, lost int64) {
	var answers, losses atomic.Int64
	var wg sync.WaitGroup
	start := time.Now()
	for _, c := range d.callers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			out, in := d.message(), make([]byte, 1<<16)
			for range outstanding {
				c.Write(out)
			}
			for time.Since(start) < length {
				c.SetReadDeadline(time.Now().Add(250 * time.Millisecond))
				n, err := c.Read(in)
				if err != nil {
					losses.Add(int64(outstanding))
					for range outstanding {
						c.Write(out)
					}
					continue
				}
				if n == d.size && in[0] == load {
					answers.Add(1)
				}
				c.Write(out)
			}
		}()
	}
	wg.Wait()
	elapsed := time.Since(start).Seconds()
	d.drain()
	return float64(answers.Load()) / elapsed, losses.Load()
}

func (d *datagrams) message() []byte {
	out := make([]byte, d.size)
	out[0] = load
	return out
}

// drain waits until nothing is under way any more, and throws it away.
func (d *datagrams) drain() {
	for _, c := range d.callers {
		for {
			c.SetReadDeadline(time.Now().Add(150 * time.Millisecond))
			if _, err := c.Read(make([]byte, 1<<16)); err != nil {
				break
			}
		}
	}
	for last := int64(-1); last != d.arrived.Load(); time.Sleep(150 * time.Millisecond) {
		last = d.arrived.Load()
	}
}

// catchUp bounds what is sent at once after this program was not scheduled in
// time: half as much again as is due in that time, until it has caught up. All
// at once would overflow the kernel's buffers before the tunnel has seen it,
// which says nothing about the tunnel.
const catchUp = time.Millisecond

// grace is what the last datagrams may take. What comes later is no loss, but
// it waited in a queue that grows: the rate is too high.
const grace = 50 * time.Millisecond

// openLoop sends at a rate, whatever comes back. What came is counted at the
// callers in the echo kind, and at the target in the other.
func (d *datagrams) openLoop(perSecond float64, length time.Duration) (sent, inTime, came int64, elapsed float64) {
	d.sent.Store(0)
	d.arrived.Store(0)
	d.answered.Store(0)
	var readers sync.WaitGroup
	var isOver atomic.Bool
	if d.isEcho {
		for _, c := range d.callers {
			readers.Add(1)
			go func() {
				defer readers.Done()
				in := make([]byte, 1<<16)
				for {
					c.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
					n, err := c.Read(in)
					if err != nil && isOver.Load() {
						return
					}
					if err == nil && n == d.size && in[0] == load {
						d.answered.Add(1)
					}
				}
			}()
		}
	}
	out := d.message()
	start := time.Now()
	woke := start
	for time.Since(start) < length {
		now := time.Now()
		slept := min(now.Sub(woke), catchUp)
		woke = now
		due := int64(now.Sub(start).Seconds()*perSecond) - d.sent.Load()
		for range min(due, int64(8+1.5*perSecond*slept.Seconds())) {
			d.callers[d.sent.Load()%int64(len(d.callers))].Write(out)
			d.sent.Add(1)
		}
		time.Sleep(200 * time.Microsecond)
	}
	elapsed = time.Since(start).Seconds()
	if d.isEcho {
		isOver.Store(true)
		readers.Wait()
		return d.sent.Load(), d.answered.Load(), d.answered.Load(), elapsed
	}
	time.Sleep(grace)
	inTime = d.arrived.Load()
	d.drain()
	return d.sent.Load(), inTime, d.arrived.Load(), elapsed
}

// highest searches the highest rate at which less than 2 % are lost or late:
// doubles it until it is too high, and halves the gap a few times.
func (d *datagrams) highest(length time.Duration) float64 {
	best := 0.0
	passes := func(rate float64) bool {
		// One pause of a garbage collector is no limit, two are.
		for range 2 {
			sent, inTime, _, elapsed := d.openLoop(rate, length)
			isKept := float64(sent) >= 0.95*rate*elapsed
			if isKept && float64(inTime) >= 0.98*float64(sent) {
				best = max(best, float64(inTime)/elapsed)
				return true
			}
		}
		return false
	}
	low, high := 0.0, 4000.0
	for passes(high) {
		low, high = high, high*2
	}
	for range 4 {
		if middle := (low + high) / 2; passes(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return best
}

// udp: how many datagrams per second get through, and how many are lost at half
// of that rate.
func udp(args []string) map[string]any {
	f := flag.NewFlagSet("udp", flag.ExitOnError)
	kind := f.String("kind", "echo", "echo or oneway")
	targetAddress := f.String("target", "", "where the tunnel leads to; listened on here")
	addr := f.String("addr", "", "the port that leads there")
	n := f.Int("n", 8, "callers, a socket each")
	outstanding := f.Int("window", 8, "echo: requests of each caller under way")
	size := f.Int("size", 64, "octets of payload")
	length := f.Duration("d", 4*time.Second, "echo: at full rate; both: at half of it")
	step := f.Duration("step", 400*time.Millisecond, "oneway: at each rate")
	f.Parse(args)
	result := map[string]any{"n": *n, "errs": 1}
	target, err := listenUDP(*targetAddress)
	if err != nil {
		result["first_err"] = err.Error()
		return result
	}
	d := &datagrams{size: *size, isEcho: *kind == "echo"}
	go d.serve(target)
	for range *n {
		c, err := net.Dial("udp4", *addr)
		if err != nil {
			result["first_err"] = err.Error()
			return result
		}
		c.(*net.UDPConn).SetReadBuffer(buffers)
		d.callers = append(d.callers, c.(*net.UDPConn))
	}
	if !d.greet() {
		result["first_err"] = "a caller got no answer"
		return result
	}
	var rate float64
	if d.isEcho {
		d.closedLoop(*outstanding, time.Second)
		perSecond, lost := d.closedLoop(*outstanding, *length)
		rate = perSecond
		result["lost_at_full"] = lost
	} else {
		d.openLoop(4000, time.Second)
		rate = d.highest(*step)
		result["mbit"] = round(rate * float64(*size) * 8 / 1e6)
	}
	result["per_s"] = round(rate)
	sent, _, came, _ := d.openLoop(rate/2, *length)
	result["sent_at_half"] = sent
	result["lost_at_half"] = sent - came
	if wanted := rate / 2 * length.Seconds(); float64(sent) < 0.9*wanted {
		result["first_err"] = fmt.Sprintf("%d of %.0f were sent at half of the rate", sent, wanted)
		return result
	}
	result["errs"] = 0
	return result
}
