package main

import (
	"crypto/tls"
	"flag"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	mtls "tunnelbench/load"
)

// handshakes makes TLS connections with a certificate, waits for the server's
// first octet (it has verified us then, which TLS 1.3 does not tell) and hangs
// up. None is resumed: agents do not come back often enough for that.
func handshakes(args []string) map[string]any {
	f := flag.NewFlagSet("handshakes", flag.ExitOnError)
	to := f.String("to", "", "host:port")
	files := f.String("tls", "", "ca,crt,key")
	alpn := f.String("alpn", "h2", "protocols offered, joined by commas")
	n := f.Int("n", 16, "at once")
	d := f.Duration("d", 5*time.Second, "how long")
	f.Parse(args)
	config := mtls.ReadTLS(*files)
	config.NextProtos = strings.Split(*alpn, ",")
	var done, errs atomic.Int64
	var last atomic.Value
	start := time.Now()
	var all sync.WaitGroup
	for i := 0; i < *n; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for time.Since(start) < *d {
				if err := shake(*to, config); err != nil {
					errs.Add(1)
					last.Store(err.Error())
				} else {
					done.Add(1)
				}
			}
		}()
	}
	all.Wait()
	result := map[string]any{"errs": errs.Load(), "per_s": round(float64(done.Load()) / time.Since(start).Seconds()), "count": done.Load()}
	if text := last.Load(); text != nil {
		result["lastProblem"] = text
	}
	return result
}

func shake(to string, config *tls.Config) error {
	c, err := net.DialTimeout("tcp", to, 5*time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Second))
	secure := tls.Client(c, config)
	// Only a client that speaks first is told anything by some servers.
	if _, err := secure.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")); err != nil {
		return err
	}
	_, err = secure.Read(make([]byte, 1))
	return err
}
