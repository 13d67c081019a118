package load

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

const dialTimeout = 10 * time.Second

// A Dialer makes one connection to the target, through whatever is being measured.
type Dialer func() (net.Conn, error)

// DialPort reaches the target behind a raw port.
func DialPort(address string) Dialer {
	return func() (net.Conn, error) { return net.DialTimeout("tcp", address, dialTimeout) }
}

// DialConnect asks the frontend via ("host:port" or "unix:path") for to by HTTP CONNECT, under mutual TLS if there is a config.
func DialConnect(via, to string, config *tls.Config) Dialer {
	network, address := "tcp", via
	if path, isUnix := strings.CutPrefix(via, "unix:"); isUnix {
		network, address = "unix", path
	}
	return func() (net.Conn, error) {
		c, err := net.DialTimeout(network, address, dialTimeout)
		if err != nil {
			return nil, err
		}
		c.SetDeadline(time.Now().Add(2 * dialTimeout))
		if config != nil {
			c = tls.Client(c, config)
		}
		fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", to, to)
		reader := bufio.NewReader(c)
		answer, err := http.ReadResponse(reader, &http.Request{Method: "CONNECT"})
		if err == nil && answer.StatusCode != http.StatusOK {
			err = fmt.Errorf("CONNECT: status %d", answer.StatusCode)
		}
		if err == nil && reader.Buffered() > 0 {
			err = fmt.Errorf("CONNECT: %d octets stand behind the answer", reader.Buffered())
		}
		if err != nil {
			c.Close()
			return nil, err
		}
		c.SetDeadline(time.Time{})
		return c, nil
	}
}

// ReadTLS reads "ca.crt,client.crt,client.key"; nil for "".
func ReadTLS(files string) *tls.Config {
	if files == "" {
		return nil
	}
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
