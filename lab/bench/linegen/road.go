package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// road is how the target is reached: a port that leads there, or CONNECT.
type road struct{ addr, via, to string }

func (r *road) flags(f *flag.FlagSet) {
	f.StringVar(&r.addr, "addr", "", "host:port that leads to the target")
	f.StringVar(&r.via, "via", "", "unix:/path or host:port of an HTTP CONNECT frontend")
	f.StringVar(&r.to, "to", "", "target to name in CONNECT")
}

func (r *road) dial(timeout time.Duration) (net.Conn, error) {
	if r.via == "" {
		return net.DialTimeout("tcp", r.addr, timeout)
	}
	network, address := "tcp", r.via
	if strings.HasPrefix(address, "unix:") {
		network, address = "unix", address[5:]
	}
	c, err := net.DialTimeout(network, address, timeout)
	if err != nil {
		return nil, err
	}
	if err := connect(c, r.to, timeout); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func connect(c net.Conn, to string, timeout time.Duration) error {
	c.SetDeadline(time.Now().Add(timeout))
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", to, to)
	reader := bufio.NewReader(c)
	response, err := http.ReadResponse(reader, &http.Request{Method: "CONNECT"})
	if err != nil {
		return err
	}
	if response.StatusCode != 200 {
		return fmt.Errorf("status %d", response.StatusCode)
	}
	if reader.Buffered() > 0 {
		return errors.New("octets of the target came with the answer")
	}
	return c.SetDeadline(time.Time{})
}

// download asks the target for octets without an end to read.
func (r *road) download() (net.Conn, error) {
	c, err := r.dial(20 * time.Second)
	if err != nil {
		return nil, err
	}
	var head [9]byte
	head[0] = 'D'
	binary.BigEndian.PutUint64(head[1:], 1<<40)
	_, err = c.Write(head[:])
	return c, err
}

// echo opens a request/response conversation.
func (r *road) echo(request, response int) (net.Conn, error) {
	c, err := r.dial(20 * time.Second)
	if err != nil {
		return nil, err
	}
	var head [9]byte
	head[0] = 'E'
	binary.BigEndian.PutUint32(head[1:], uint32(request))
	binary.BigEndian.PutUint32(head[5:], uint32(response))
	_, err = c.Write(head[:])
	return c, err
}

// firstOctet gets the one octet that the target says at once.
func (r *road) firstOctet(timeout time.Duration) error {
	c, err := r.dial(timeout)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(timeout))
	if _, err := c.Write([]byte{'I'}); err != nil {
		return err
	}
	_, err = io.ReadFull(c, make([]byte, 1))
	return err
}
