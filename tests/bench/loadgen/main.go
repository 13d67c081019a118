// Target and load generator in one, see the README beside it.
package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// protocol: first byte: 'U' upload until EOF -> 8 byte count; 'D'+8 byte n -> n bytes; 'E'+4 byte reqsize+4 byte respsize -> rr loop; 'S' stall (never read)
func target(addr string) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		panic(err)
	}
	zero := make([]byte, 1<<18)
	for {
		c, err := ln.Accept()
		if err != nil {
			continue
		}
		go func(c net.Conn) {
			defer c.Close()
			var b [16]byte
			if _, err := io.ReadFull(c, b[:1]); err != nil {
				return
			}
			switch b[0] {
			case 'U':
				buf := make([]byte, 1<<18)
				var n int64
				for {
					k, err := c.Read(buf)
					n += int64(k)
					if err != nil {
						break
					}
				}
				binary.BigEndian.PutUint64(b[:8], uint64(n))
				c.Write(b[:8])
			case 'L': // upload with known length
				io.ReadFull(c, b[:8])
				want := int64(binary.BigEndian.Uint64(b[:8]))
				buf := make([]byte, 1<<18)
				var n int64
				for n < want {
					k, err := c.Read(buf)
					n += int64(k)
					if err != nil {
						break
					}
				}
				binary.BigEndian.PutUint64(b[:8], uint64(n))
				c.Write(b[:8])
			case 'D':
				if _, err := io.ReadFull(c, b[:8]); err != nil {
					return
				}
				n := int64(binary.BigEndian.Uint64(b[:8]))
				for n > 0 {
					k := int64(len(zero))
					if n < k {
						k = n
					}
					w, err := c.Write(zero[:k])
					n -= int64(w)
					if err != nil {
						return
					}
				}
			case 'E':
				if _, err := io.ReadFull(c, b[:8]); err != nil {
					return
				}
				rq := int(binary.BigEndian.Uint32(b[:4]))
				rs := int(binary.BigEndian.Uint32(b[4:8]))
				in := make([]byte, rq)
				out := make([]byte, rs)
				for {
					if _, err := io.ReadFull(c, in); err != nil {
						return
					}
					if _, err := c.Write(out); err != nil {
						return
					}
				}
			case 'I':
				c.Write([]byte{'i'})
				io.Copy(io.Discard, c)
			case 'S':
				time.Sleep(time.Hour)
			}
		}(c)
	}
}

var addr, connectVia, connectTo, viaTLS string
var viaConfig *tls.Config // mutual TLS towards a -via host:port; nil: plain

// loadTLS reads "ca.crt,client.crt,client.key".
func loadTLS(files string) *tls.Config {
	f := strings.Split(files, ",")
	pem, err := os.ReadFile(f[0])
	if err != nil {
		panic(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	pair, err := tls.LoadX509KeyPair(f[1], f[2])
	if err != nil {
		panic(err)
	}
	return &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}, ServerName: "localhost"}
}

func dial() (net.Conn, error) {
	if connectVia == "" {
		return net.DialTimeout("tcp", addr, 10*time.Second)
	}
	network := "tcp"
	a := connectVia
	if strings.HasPrefix(a, "unix:") {
		network = "unix"
		a = a[5:]
	}
	c, err := net.DialTimeout(network, a, 10*time.Second)
	if err != nil {
		return nil, err
	}
	c.SetDeadline(time.Now().Add(20 * time.Second))
	if viaConfig != nil {
		c = tls.Client(c, viaConfig)
	}
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", connectTo, connectTo)
	br := bufio.NewReader(c)
	r, err := http.ReadResponse(br, &http.Request{Method: "CONNECT"})
	if err != nil {
		c.Close()
		return nil, err
	}
	if r.StatusCode != 200 {
		c.Close()
		return nil, fmt.Errorf("status %d", r.StatusCode)
	}
	c.SetDeadline(time.Time{})
	if br.Buffered() > 0 {
		panic("early data")
	}
	return c, nil
}

type cpu struct {
	u, s float64
	rss  int64
	csw  int64
}

func cpuOf(pids []string) (t cpu) {
	for _, p := range pids {
		b, err := os.ReadFile("/proc/" + p + "/stat")
		if err != nil {
			continue
		}
		f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+2:]))
		u, _ := strconv.ParseFloat(f[11], 64)
		s, _ := strconv.ParseFloat(f[12], 64)
		r, _ := strconv.ParseInt(f[21], 10, 64)
		t.u += u / 100
		t.s += s / 100
		t.rss += r * 4096
	}
	return
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "target" {
		target(os.Args[2])
		return
	}
	mode := flag.String("mode", "down", "")
	flag.StringVar(&addr, "addr", "127.0.0.1:7001", "")
	flag.StringVar(&connectVia, "via", "", "")
	flag.StringVar(&viaTLS, "tls", "", "ca.crt,client.crt,client.key: mTLS to a -via host:port")
	flag.StringVar(&connectTo, "to", "127.0.0.1:7000", "")
	n := flag.Int("n", 1, "conns")
	gb := flag.Float64("gb", 1, "total GB")
	dur := flag.Duration("d", 5*time.Second, "")
	req := flag.Int("req", 128, "")
	resp := flag.Int("resp", 1024, "")
	pidl := flag.String("pids", "", "")
	stall := flag.Int("stall", 0, "stalled downloads beside")
	name := flag.String("name", "", "")
	flag.Parse()
	if viaTLS != "" {
		viaConfig = loadTLS(viaTLS)
	}
	pids := []string{}
	for _, p := range strings.FieldsFunc(*pidl, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' }) {
		pids = append(pids, p)
	}
	res := map[string]any{"name": *name, "mode": *mode, "n": *n}
	for i := 0; i < *stall; i++ {
		c, err := dial()
		if err != nil {
			panic(err)
		}
		var h [9]byte
		h[0] = 'D'
		binary.BigEndian.PutUint64(h[1:], 1<<40)
		c.Write(h[:])
		// never read
		defer c.Close()
	}
	if *stall > 0 {
		time.Sleep(1500 * time.Millisecond)
		res["stall"] = *stall
	}
	c0 := cpuOf(pids)
	t0 := time.Now()
	var errs int64
	switch *mode {
	case "down", "up":
		per := int64(*gb * 1e9 / float64(*n))
		var wg sync.WaitGroup
		var total int64
		deadline := time.Now().Add(120 * time.Second)
		for i := 0; i < *n; i++ {
			wg.Add(1)
			go func() {
				defer wg.Done()
				c, err := dial()
				if err != nil {
					atomic.AddInt64(&errs, 1)
					return
				}
				defer c.Close()
				c.SetDeadline(deadline)
				var h [9]byte
				buf := make([]byte, 1<<18)
				if *mode == "down" {
					h[0] = 'D'
					binary.BigEndian.PutUint64(h[1:], uint64(per))
					c.Write(h[:])
					var got int64
					for got < per {
						k, err := c.Read(buf)
						got += int64(k)
						if err != nil {
							atomic.AddInt64(&errs, 1)
							break
						}
					}
					atomic.AddInt64(&total, got)
				} else {
					h[0] = 'L'
					binary.BigEndian.PutUint64(h[1:], uint64(per))
					c.Write(h[:])
					left := per
					for left > 0 {
						k := int64(len(buf))
						if left < k {
							k = left
						}
						w, err := c.Write(buf[:k])
						left -= int64(w)
						if err != nil {
							atomic.AddInt64(&errs, 1)
							return
						}
					}
					var r [8]byte
					if _, err := io.ReadFull(c, r[:]); err != nil {
						atomic.AddInt64(&errs, 1)
					}
					atomic.AddInt64(&total, int64(binary.BigEndian.Uint64(r[:])))
				}
			}()
		}
		wg.Wait()
		el := time.Since(t0).Seconds()
		c1 := cpuOf(pids)
		res["gbps"] = r3(float64(total) * 8 / el / 1e9)
		res["octets"] = total
		res["wanted"] = per * int64(*n)
		if total > 0 && len(pids) > 0 {
			res["cpu_s_per_GB"] = r3((c1.u + c1.s - c0.u - c0.s) / (float64(total) / 1e9))
			res["sys_frac"] = r3((c1.s - c0.s) / (c1.u + c1.s - c0.u - c0.s))
		}
		res["rssMB"] = c1.rss >> 20
	case "rr", "conn":
		var mu sync.Mutex
		var lat []float64
		var wg sync.WaitGroup
		var cnt int64
		stop := t0.Add(*dur)
		for i := 0; i < *n; i++ {
			wg.Add(1)
			go func() {
				defer wg.Done()
				var l []float64
				out := make([]byte, *req)
				in := make([]byte, *resp)
				hdr := make([]byte, 9)
				hdr[0] = 'E'
				binary.BigEndian.PutUint32(hdr[1:], uint32(*req))
				binary.BigEndian.PutUint32(hdr[5:], uint32(*resp))
				first := append(append([]byte{}, hdr...), out...)
				if *mode == "rr" {
					c, err := dial()
					if err != nil {
						atomic.AddInt64(&errs, 1)
						return
					}
					defer c.Close()
					c.SetDeadline(stop.Add(10 * time.Second))
					f := true
					for time.Now().Before(stop) {
						s := time.Now()
						var err error
						if f {
							_, err = c.Write(first)
							f = false
						} else {
							_, err = c.Write(out)
						}
						if err == nil {
							_, err = io.ReadFull(c, in)
						}
						if err != nil {
							atomic.AddInt64(&errs, 1)
							return
						}
						l = append(l, float64(time.Since(s).Microseconds()))
					}
				} else {
					for time.Now().Before(stop) {
						s := time.Now()
						c, err := dial()
						if err != nil {
							atomic.AddInt64(&errs, 1)
							time.Sleep(10 * time.Millisecond)
							continue
						}
						c.SetDeadline(time.Now().Add(10 * time.Second))
						_, err = c.Write(first)
						if err == nil {
							_, err = io.ReadFull(c, in)
						}
						c.Close()
						if err != nil {
							atomic.AddInt64(&errs, 1)
							continue
						}
						l = append(l, float64(time.Since(s).Microseconds()))
					}
				}
				atomic.AddInt64(&cnt, int64(len(l)))
				mu.Lock()
				lat = append(lat, l...)
				mu.Unlock()
			}()
		}
		wg.Wait()
		el := time.Since(t0).Seconds()
		c1 := cpuOf(pids)
		sort.Float64s(lat)
		if len(lat) > 0 {
			res["p50us"] = lat[len(lat)/2]
			res["p99us"] = lat[len(lat)*99/100]
			res["p999us"] = lat[len(lat)*999/1000]
			res["cpu_ms_per_1k"] = r3((c1.u + c1.s - c0.u - c0.s) * 1e6 / float64(cnt))
		}
		res["per_s"] = int(float64(cnt) / el)
		res["count"] = cnt
		res["rssMB"] = c1.rss >> 20
	case "idle":
		cs := make([]net.Conn, 0, *n)
		sem := make(chan struct{}, 64)
		var mu sync.Mutex
		var wg sync.WaitGroup
		for i := 0; i < *n; i++ {
			wg.Add(1)
			sem <- struct{}{}
			go func() {
				defer func() { <-sem; wg.Done() }()
				c, err := dial()
				if err != nil {
					atomic.AddInt64(&errs, 1)
					return
				}
				c.SetDeadline(time.Now().Add(20 * time.Second))
				c.Write([]byte{'I'})
				var b [1]byte
				if _, err := io.ReadFull(c, b[:]); err != nil {
					atomic.AddInt64(&errs, 1)
					c.Close()
					return
				}
				mu.Lock()
				cs = append(cs, c)
				mu.Unlock()
			}()
		}
		wg.Wait()
		res["open_s"] = r3(time.Since(t0).Seconds())
		time.Sleep(3 * time.Second)
		c1 := cpuOf(pids)
		res["ok"] = len(cs)
		res["rss0MB"] = c0.rss >> 20
		res["rss1MB"] = c1.rss >> 20
		if len(cs) > 0 {
			res["KB_per_conn"] = r3(float64(c1.rss-c0.rss) / 1024 / float64(len(cs)))
		}
		c2 := cpuOf(pids)
		t2 := time.Now()
		time.Sleep(5 * time.Second)
		c3 := cpuOf(pids)
		res["idle_cpu_pct"] = r3((c3.u + c3.s - c2.u - c2.s) / time.Since(t2).Seconds() * 100)
		for _, c := range cs {
			c.Close()
		}
	}
	res["errs"] = errs
	b, _ := json.Marshal(res)
	fmt.Println(string(b))
}

func r3(f float64) float64 { v, _ := strconv.ParseFloat(fmt.Sprintf("%.4g", f), 64); return v }
