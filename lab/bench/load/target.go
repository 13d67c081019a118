package load

import (
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// idling counts the open connections that said 'I'.
var idling atomic.Int64

// Target serves what the README says, by the first octet of a connection. It does not return.
func Target(address string) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		panic(err)
	}
	zero := make([]byte, 1<<18)
	for {
		if c, err := listener.Accept(); err == nil {
			go serve(c, zero)
		}
	}
}

func serve(c net.Conn, zero []byte) {
	defer c.Close()
	var b [9]byte
	if _, err := io.ReadFull(c, b[:1]); err != nil {
		return
	}
	number := func() int64 {
		io.ReadFull(c, b[1:])
		return int64(binary.BigEndian.Uint64(b[1:]))
	}
	answer := func(n int64) {
		binary.BigEndian.PutUint64(b[1:], uint64(n))
		c.Write(b[1:])
	}
	switch b[0] {
	case 'U': // upload until the end
		n, _ := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{c}, make([]byte, 1<<18))
		answer(n)
	case 'L': // upload of a length that is said before
		n, _ := io.CopyBuffer(struct{ io.Writer }{io.Discard}, io.LimitReader(c, number()), make([]byte, 1<<18))
		answer(n)
	case 'D':
		for n := number(); n > 0; {
			w, err := c.Write(zero[:min(n, int64(len(zero)))])
			n -= int64(w)
			if err != nil {
				return
			}
		}
	case 'E':
		if _, err := io.ReadFull(c, b[1:]); err != nil {
			return
		}
		in := make([]byte, binary.BigEndian.Uint32(b[1:5]))
		out := make([]byte, binary.BigEndian.Uint32(b[5:9]))
		for {
			if _, err := io.ReadFull(c, in); err != nil {
				return
			}
			if _, err := c.Write(out); err != nil {
				return
			}
		}
	case 'I':
		idling.Add(1)
		defer idling.Add(-1)
		c.Write([]byte{'i'})
		io.Copy(io.Discard, c)
	case 'N':
		answer(idling.Load())
	case 'S':
		// The kernel is not to swallow megabytes before the sender is stuck.
		if tcp, isTCP := c.(*net.TCPConn); isTCP {
			tcp.SetReadBuffer(1 << 16)
		}
		time.Sleep(time.Hour)
	}
}
