// A slow, long, lossy line without netem, see the README in the folder above.
package main

import (
	"flag"
	"fmt"
	"io"
	"math/rand"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

type pkt struct {
	at time.Time
	b  []byte
}

func sh(s string) {
	if o, err := exec.Command("sh", "-c", s).CombinedOutput(); err != nil {
		fmt.Println(s, err, string(o))
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

func fwd(from, to io.ReadWriter, delay time.Duration, loss float64, rate float64, qlim int) {
	ch := make(chan pkt, 200000)
	go func() {
		for p := range ch {
			d := time.Until(p.at)
			if d > 0 {
				time.Sleep(d)
			}
			to.Write(p.b)
		}
	}()
	next := time.Now()
	buf := make([]byte, 65536)
	for {
		n, err := from.Read(buf)
		if err != nil {
			panic(err)
		}
		if loss > 0 && rand.Float64() < loss {
			continue
		}
		now := time.Now()
		if rate > 0 {
			if next.Before(now) {
				next = now
			}
			if next.Sub(now).Seconds()*rate/8 > float64(qlim) {
				continue
			} // tail drop
			next = next.Add(time.Duration(float64(n*8) / rate * 1e9))
			now = next
		}
		b := make([]byte, n)
		copy(b, buf[:n])
		ch <- pkt{now.Add(delay), b}
	}
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
	loss := flag.Float64("loss", 0, "")
	rate := flag.Float64("mbit", 0, "")
	px := flag.String("proxy", "", "listen=target,...")
	flag.Parse()
	if *px != "" {
		for _, p := range strings.Split(*px, ",") {
			x := strings.Split(p, "=")
			go proxy(x[0], x[1], *delay)
		}
		select {}
	}
	a := tun("tnA")
	b := tun("tnB")
	for _, x := range []string{"A", "B"} {
		sh("ip netns add ns" + x + " 2>/dev/null; true")
		sh("ip link set tn" + x + " netns ns" + x)
	}
	sh("ip -n nsA addr add 10.99.0.1/24 dev tnA; ip -n nsA link set tnA mtu 1500 txqueuelen 5000 up; ip -n nsA link set lo up")
	sh("ip -n nsB addr add 10.99.0.2/24 dev tnB; ip -n nsB link set tnB mtu 1500 txqueuelen 5000 up; ip -n nsB link set lo up")
	ql := int(*rate * 1e6 / 8 * 2 * delay.Seconds())
	if ql < 1<<18 {
		ql = 1 << 18
	}
	go fwd(a, b, *delay, *loss, *rate*1e6, ql)
	fwd(b, a, *delay, *loss, *rate*1e6, ql)
}
