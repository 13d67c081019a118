// Load for an ADS server: many streams, and how long a change of the catalog takes until the last of them has it.
//
//	xds-adsload -write FILE [-clusters 200 -endpoints 3]       writes a catalog for the server to begin with
//	xds-adsload -addr HOST:PORT -catalog FILE -phase connect|one|full|flaps [-delta] [-streams 1000] [-pid SERVER]
//	xds-adsload -addr HOST:PORT -catalog FILE -hold            connects, prints "synced", and reads until it is killed
//
// Every phase begins with all streams getting all clusters and load assignments. A change renames a new catalog into the place of
// FILE and ends when every stream has a load assignment with the new port in it. Prints one line of JSON; times in ms.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math"
	"os"
	"sync/atomic"
	"time"
)

var (
	address   = flag.String("addr", "", "the server, plaintext")
	file      = flag.String("catalog", "", "the server's catalog")
	write     = flag.String("write", "", "write a catalog here, and that is all")
	services  = flag.Int("clusters", 200, "in the catalog, with one port each")
	endpoints = flag.Int("endpoints", 3, "for each cluster")
	phase     = flag.String("phase", "connect", "what is measured")
	isDelta   = flag.Bool("delta", false, "Delta in place of SotW")
	streams   = flag.Int("streams", 1000, "each on a connection of its own")
	slow      = flag.Int("slow", 0, "further ones that read nothing any more once all are synced")
	hold      = flag.Bool("hold", false, "no phase: keep reading")
	pid       = flag.Int("pid", 0, "the server's, for CPU and memory")
	rounds    = flag.Int("rounds", 0, "changes; 20 of one endpoint and 3 of all unless given")
	gap       = flag.Duration("gap", 200*time.Millisecond, "between changes")
	perSecond = flag.Int("flaps", 100, "changes of one endpoint a second")
	flapFor   = flag.Duration("flap-for", 5*time.Second, "for so long")
	limit     = flag.Duration("limit", 60*time.Second, "for a change to arrive everywhere")
)

func main() {
	log.SetFlags(0)
	flag.Parse()
	c := newCatalog(*services, *endpoints)
	if *write != "" {
		if err := c.write(*write); err != nil {
			log.Fatal(err)
		}
		return
	}
	l := &load{catalog: c, server: process(*pid), result: map[string]any{}, port: 20_000 + uint32(os.Getpid()%20_000)}
	l.connect()
	if *hold {
		fmt.Println("synced")
		select {}
	}
	switch *phase {
	case "connect":
	case "one":
		l.changes(false, or(*rounds, 20))
	case "full":
		l.changes(true, or(*rounds, 3))
	case "flaps":
		l.flaps()
	default:
		log.Fatalf("unknown phase %q", *phase)
	}
	l.result["errs"] = l.dead.Load()
	if why := l.why.Load(); why != nil {
		l.result["first_err"] = *why
	}
	line, _ := json.Marshal(l.result)
	fmt.Println(string(line))
}

func or(given, usual int) int {
	if given > 0 {
		return given
	}
	return usual
}

type load struct {
	catalog catalog
	server  process
	result  map[string]any
	port    uint32 // of the last change
	streams []*stream

	dead atomic.Int64
	why  atomic.Pointer[string]
}

func (l *load) connect() {
	stall := make(chan struct{})
	g := newGoal(*streams+*slow, *services, 0)
	l.measure(1, func() []*goal {
		for i := range *streams + *slow {
			s := &stream{id: i, isDelta: *isDelta}
			if i >= *streams {
				s.stall = stall
			}
			l.streams = append(l.streams, s)
			go l.run(s)
		}
		l.await(g)
		return []*goal{g}
	})
	close(stall)
}

func (l *load) run(s *stream) {
	c, err := dial(*address)
	if err == nil {
		err = s.run(c)
	}
	if err != nil {
		why := err.Error()
		l.why.CompareAndSwap(nil, &why)
		l.dead.Add(1)
	}
}

func (l *load) changes(all bool, n int) {
	wanted := 1
	if all {
		wanted = *services
	}
	l.measure(n, func() (goals []*goal) {
		for range n {
			goals = append(goals, l.change(all, wanted))
			l.await(goals[len(goals)-1])
			time.Sleep(*gap) // and ACKs come meanwhile
		}
		return
	})
}

func (l *load) flaps() {
	before := l.responses()
	l.measure(1, func() []*goal {
		var g *goal
		t := time.NewTicker(time.Second / time.Duration(*perSecond))
		defer t.Stop()
		for end := time.Now().Add(*flapFor); time.Now().Before(end); <-t.C {
			g = l.change(false, 1)
		}
		l.await(g) // Nobody needs to see what was changed again at once.
		return []*goal{g}
	})
	most := int64(0)
	for i, n := range l.responses() {
		most = max(most, n-before[i])
	}
	l.result["most_responses_per_second"] = round(float64(most) / flapFor.Seconds())
}

// responses is how many load assignments each stream was sent.
func (l *load) responses() (all []int64) {
	for _, s := range l.streams {
		all = append(all, s.responses.Load())
	}
	return
}

// change makes the goal before the change, so that its time counts.
func (l *load) change(all bool, wanted int) *goal {
	l.port++
	l.catalog.move(all, l.port)
	g := newGoal(*streams, wanted, l.port)
	if err := l.catalog.write(*file); err != nil {
		log.Fatal(err)
	}
	return g
}

func (l *load) await(g *goal) {
	if !g.wait(*limit) {
		first := ""
		if why := l.why.Load(); why != nil {
			first = ", first error: " + *why
		}
		log.Fatalf("%d streams did not get it in %v; %d ended%s", g.missing(), *limit, l.dead.Load(), first)
	}
}

// measure replaces what was measured before.
func (l *load) measure(changes int, run func() []*goal) {
	cpu, octets, peak := l.server.cpu(), received.Load(), l.server.watchPeak()
	goals := run()
	time.Sleep(*gap)
	var last, all []time.Duration
	for _, g := range goals {
		last = append(last, quantile(g.took, 1))
		all = append(all, g.took...)
	}
	l.result["last_ms"] = milliseconds(quantile(last, 0.5))
	l.result["worst_ms"] = milliseconds(quantile(last, 1))
	l.result["p50_ms"] = milliseconds(quantile(all, 0.5))
	l.result["p99_ms"] = milliseconds(quantile(all, 0.99))
	l.result["cpu_s"] = round((l.server.cpu() - cpu) / float64(changes))
	l.result["rss_mib"] = round(peak())
	l.result["mb"] = round(float64(received.Load()-octets) / 1e6 / float64(changes))
}

func milliseconds(d time.Duration) float64 { return round(float64(d.Microseconds()) / 1000) }

func round(x float64) float64 { return math.Round(x*1000) / 1000 }
