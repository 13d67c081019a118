package main

import (
	"flag"
	"time"
)

// first tries until the target's first octet came: when a tunnel is ready, as
// its user sees it. `epochMs` tells the time of that, for whoever knows when
// the tunnel was started.
func first(args []string) map[string]any {
	f := flag.NewFlagSet("first", flag.ExitOnError)
	var r road
	r.flags(f)
	wait := f.Duration("wait", 20*time.Second, "give up after")
	every := f.Duration("every", 2*time.Millisecond, "pause between attempts")
	try := f.Duration("try", time.Second, "limit on one attempt")
	f.Parse(args)
	result := map[string]any{"errs": 1}
	last := ""
	attempts := 0
	for deadline := time.Now().Add(*wait); time.Now().Before(deadline); time.Sleep(*every) {
		attempts++
		err := r.firstOctet(*try)
		if err == nil {
			result["errs"] = 0
			result["epochMs"] = float64(time.Now().UnixMicro()) / 1000
			break
		}
		last = err.Error()
	}
	result["attempts"] = attempts
	result["lastProblem"] = last
	return result
}
