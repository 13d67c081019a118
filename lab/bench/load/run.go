// Package load is target and load generator in one, whatever way it takes to the target; see the README in the folder above.
package load

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A run is what one call of the generator was asked for, and what it found.
type run struct {
	dial       Dialer
	mode       string
	n          int
	gb         float64
	duration   time.Duration
	req, resp  int
	stall      int
	stallSide  string
	settle     time.Duration
	target     string
	pids       []int
	before     usage
	mu         sync.Mutex
	errs       int
	firstError error
	result     map[string]any
}

// Main reads the command line, runs the load through dialer and prints one line of JSON. The dialer is made after flags are read.
func Main(dialer func() Dialer) {
	r := &run{result: map[string]any{}}
	flag.StringVar(&r.mode, "mode", "down", "down, up, rr, conn, idle, pinned or probe")
	flag.IntVar(&r.n, "n", 1, "connections")
	flag.Float64Var(&r.gb, "gb", 1, "GB in all (down, up)")
	flag.DurationVar(&r.duration, "d", 5*time.Second, "how long (rr, conn), at most (probe)")
	flag.IntVar(&r.req, "req", 128, "octets of a request")
	flag.IntVar(&r.resp, "resp", 1024, "octets of an answer")
	flag.IntVar(&r.stall, "stall", 0, "stalled connections beside (rr)")
	flag.StringVar(&r.stallSide, "stall-side", "client", "who does not read: client or target (rr with -stall, pinned)")
	flag.DurationVar(&r.settle, "settle", 0, "how long memory may take to come back (idle, down, up)")
	flag.StringVar(&r.target, "target", "", "host:port of the target itself, which is asked what it sees (idle)")
	pids := flag.String("pids", "", "the processes to watch, with their children")
	name := flag.String("name", "", "printed as it is")
	flag.Parse()
	for _, p := range strings.FieldsFunc(*pids, func(c rune) bool { return c == ',' || c == ' ' || c == '\n' }) {
		pid, err := strconv.Atoi(p)
		if err != nil {
			fmt.Fprintln(os.Stderr, "-pids:", err)
			os.Exit(2)
		}
		r.pids = append(r.pids, pid)
	}
	loads := map[string]func(*run){"down": bulk, "up": bulk, "rr": requests, "conn": connections, "idle": idle, "pinned": pinned, "probe": probe}
	load := loads[r.mode]
	if load == nil {
		fmt.Fprintf(os.Stderr, "-mode: %q is unknown\n", r.mode)
		os.Exit(2)
	}
	r.dial = dialer()
	r.before = usageOf(r.pids)
	r.result["name"], r.result["mode"], r.result["n"] = *name, r.mode, r.n
	first := r.before
	load(r)
	r.result["gone"] = first.gone(usageOf(r.pids))
	r.result["errs"] = r.errs
	if r.firstError != nil {
		r.result["first_err"] = r.firstError.Error()
	}
	b, err := json.Marshal(r.result)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(b))
}

func (r *run) failed(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs++
	if r.firstError == nil {
		r.firstError = err
	}
}

// cpuSince is CPU-seconds; nothing is reported where there is nothing to watch.
func (r *run) cpuSince(before, after usage) (float64, bool) {
	return after.cpu() - before.cpu(), len(r.pids) > 0
}

// probe is over with the first request that is answered.
func probe(r *run) {
	begin := time.Now()
	for {
		err := r.once()
		if err == nil {
			r.result["ready_ms"] = r4(float64(time.Since(begin).Microseconds()) / 1000)
			return
		}
		if time.Since(begin) > r.duration {
			r.failed(err)
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// r4 keeps four digits.
func r4(f float64) float64 { v, _ := strconv.ParseFloat(fmt.Sprintf("%.4g", f), 64); return v }
