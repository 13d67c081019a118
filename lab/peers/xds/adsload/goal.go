package main

import (
	"bytes"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// A goal is what all streams wait for: load assignments in which a port is that was nowhere before, or any at all when there is none.
type goal struct {
	wanted int    // so many different ones
	mark   []byte // the port as it stands in a SocketAddress
	start  time.Time

	lock sync.Mutex
	took []time.Duration
	left int
	done chan struct{}
}

// current is looked at by every stream for every load assignment.
var current atomic.Pointer[goal]

func newGoal(streams, wanted int, port uint32) *goal {
	g := &goal{wanted: wanted, start: time.Now(), left: streams, done: make(chan struct{})}
	if port != 0 {
		g.mark = protowire.AppendVarint([]byte{3 << 3}, uint64(port))
	}
	current.Store(g)
	return g
}

func (g *goal) reached() {
	g.lock.Lock()
	defer g.lock.Unlock()
	g.took = append(g.took, time.Since(g.start))
	if g.left--; g.left == 0 {
		close(g.done)
	}
}

// missing is how many streams have not reached it.
func (g *goal) missing() int {
	g.lock.Lock()
	defer g.lock.Unlock()
	return g.left
}

func (g *goal) wait(limit time.Duration) bool {
	select {
	case <-g.done:
		return true
	case <-time.After(limit):
		return false
	}
}

// A pursuit is one stream's part of the goal.
type pursuit struct {
	of   *goal
	have map[string]bool // nil when it has them all
}

func (p *pursuit) see(r resource) {
	g := current.Load()
	if g == nil {
		return
	}
	if p.of != g {
		p.of, p.have = g, map[string]bool{}
	}
	if p.have == nil || g.mark != nil && !bytes.Contains(r.value, g.mark) {
		return
	}
	if p.have[r.name] = true; len(p.have) >= g.wanted {
		p.have = nil
		g.reached()
	}
}

func quantile(d []time.Duration, q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[min(len(d)-1, int(q*float64(len(d))))]
}
