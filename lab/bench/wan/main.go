// A slow, long, lossy line without netem, see the README in the folder above.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

type pkt struct {
	at time.Time
	b  []byte
}

// direction is one way of the line and what it did to packets.
type direction struct {
	delay              time.Duration
	loss, rate         float64
	queue              int
	random             *rand.Rand
	sent, octets       atomic.Int64
	lost, full, queued atomic.Int64 // queued: the most octets that ever waited for the rate
}

func (d *direction) report() map[string]int64 {
	return map[string]int64{
		"packets": d.sent.Load(), "bytes": d.octets.Load(), "lost": d.lost.Load(),
		"dropped_at_full_queue": d.full.Load(), "longest_queue_bytes": d.queued.Load(),
	}
}

func (d *direction) carry(from, to io.ReadWriter) {
	ch := make(chan pkt, 200000)
	go func() {
		for p := range ch {
			if wait := time.Until(p.at); wait > 0 {
				time.Sleep(wait)
			}
			to.Write(p.b)
		}
	}()
	next := time.Now()
	buf := make([]byte, 65536)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		if d.loss > 0 && d.random.Float64() < d.loss {
			d.lost.Add(1)
			continue
		}
		now := time.Now()
		if d.rate > 0 {
			if next.Before(now) {
				next = now
			}
			waiting := int(next.Sub(now).Seconds() * d.rate / 8)
			if waiting > d.queue {
				d.full.Add(1)
				continue
			}
			if int64(waiting) > d.queued.Load() {
				d.queued.Store(int64(waiting))
			}
			next = next.Add(time.Duration(float64(n*8) / d.rate * 1e9))
			now = next
		}
		d.sent.Add(1)
		d.octets.Add(int64(n))
		b := make([]byte, n)
		copy(b, buf[:n])
		ch <- pkt{now.Add(d.delay), b}
	}
}

func sh(s string) {
	if o, err := exec.Command("sh", "-c", s).CombinedOutput(); err != nil {
		fmt.Fprintln(os.Stderr, s, err, string(o))
		os.Exit(1)
	}
}

func tun(name string) *os.File {
	fd, err := syscall.Open("/dev/net/tun", syscall.O_RDWR, 0)
	if err != nil {
		panic(err)
	}
	var ifr [40]byte
	copy(ifr[:15], name)
	*(*uint16)(unsafe.Pointer(&ifr[16])) = 0x0001 | 0x1000 // TUN | NO_PI
	if _, _, e := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), 0x400454ca, uintptr(unsafe.Pointer(&ifr[0]))); e != 0 {
		panic(e)
	}
	return os.NewFile(uintptr(fd), name)
}

func proxy(l, t string, delay time.Duration) {
	ln, err := net.Listen("tcp", l)
	if err != nil {
		panic(err)
	}
	cp := func(d, s *net.TCPConn) {
		type c struct {
			at time.Time
			b  []byte
		}
		ch := make(chan c, 4096)
		go func() {
			for x := range ch {
				if w := time.Until(x.at); w > 0 {
					time.Sleep(w)
				}
				if _, err := d.Write(x.b); err != nil {
					break
				}
			}
			d.CloseWrite()
			for range ch {
			}
		}()
		buf := make([]byte, 1<<16)
		for {
			n, err := s.Read(buf)
			if n > 0 {
				b := make([]byte, n)
				copy(b, buf[:n])
				ch <- c{time.Now().Add(delay), b}
			}
			if err != nil {
				close(ch)
				return
			}
		}
	}
	for {
		a, err := ln.Accept()
		if err != nil {
			continue
		}
		go func() {
			b, err := net.Dial("tcp", t)
			if err != nil {
				a.Close()
				return
			}
			go cp(a.(*net.TCPConn), b.(*net.TCPConn))
			cp(b.(*net.TCPConn), a.(*net.TCPConn))
		}()
	}
}

func main() {
	delay := flag.Duration("delay", 25*time.Millisecond, "one way")
	loss := flag.Float64("loss", 0, "probability, each way")
	rate := flag.Float64("mbit", 0, "Mbit/s each way; 0: no limit, and so no queue")
	queue := flag.Int("queue", 0, "octets that may wait for the rate; 0: one bandwidth-delay product, 256 KiB at least")
	seed := flag.Int64("seed", 1, "of the losses: the same packets by number are lost again")
	name := flag.String("name", "", "suffix of namespaces and devices, so that several lines can be up")
	px := flag.String("proxy", "", "listen=target,...")
	many := flag.Bool("hub", false, "many ends instead of two, as lines on standard input say, see hub.go")
	flag.Parse()
	if *many {
		serveHub(*seed)
		return
	}
	if *px != "" {
		for _, p := range strings.Split(*px, ",") {
			x := strings.Split(p, "=")
			go proxy(x[0], x[1], *delay)
		}
		select {}
	}
	if *queue == 0 {
		*queue = max(1<<18, int(*rate*1e6/8*2*delay.Seconds()))
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	ends := []*os.File{tun("tnA" + *name), tun("tnB" + *name)}
	for i, end := range []string{"A", "B"} {
		ns, dev := "ns"+end+*name, "tn"+end+*name
		// What a run that was killed has left behind.
		exec.Command("ip", "netns", "del", ns).Run()
		sh("ip netns add " + ns + " && ip link set " + dev + " netns " + ns)
		sh(fmt.Sprintf("ip -n %s addr add 10.99.0.%d/24 dev %s && ip -n %s link set %s mtu 1500 txqueuelen 5000 up && ip -n %s link set lo up",
			ns, i+1, dev, ns, dev, ns))
	}
	ways := map[string]*direction{}
	for i, way := range []string{"a_to_b", "b_to_a"} {
		d := &direction{delay: *delay, loss: *loss, rate: *rate * 1e6, queue: *queue,
			random: rand.New(rand.NewSource(*seed*2 + int64(i)))}
		ways[way] = d
		go d.carry(ends[i], ends[1-i])
	}
	fmt.Println("ready")
	<-signals
	b, _ := json.Marshal(map[string]any{"a_to_b": ways["a_to_b"].report(), "b_to_a": ways["b_to_a"].report()})
	fmt.Println(string(b))
	for _, end := range []string{"A", "B"} {
		exec.Command("ip", "netns", "del", "ns"+end+*name).Run()
	}
}
