// Load for the measurements over slow lines, of cold starts and of datagrams,
// see the README in the folder above.
package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"sort"
	"strconv"
)

func main() {
	modes := map[string]func([]string) map[string]any{
		"first": first, "beside": beside, "bulk": bulk, "udp": udp, "handshakes": handshakes,
	}
	if len(os.Args) < 2 || modes[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: linegen first|beside|bulk|udp|handshakes [flags]")
		os.Exit(2)
	}
	line, err := json.Marshal(modes[os.Args[1]](os.Args[2:]))
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
}

// quantile of sorted values; NaN has no JSON, so none gives 0.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(math.Min(float64(len(sorted)-1), q*float64(len(sorted))))]
}

// spread adds p50, p90, p99 and the largest of values in milliseconds.
func spread(into map[string]any, values []float64) {
	sort.Float64s(values)
	into["p50ms"] = round(quantile(values, 0.5))
	into["p90ms"] = round(quantile(values, 0.9))
	into["p99ms"] = round(quantile(values, 0.99))
	into["p100ms"] = round(quantile(values, 1))
	into["count"] = len(values)
}

// round keeps four digits.
func round(f float64) float64 {
	v, _ := strconv.ParseFloat(fmt.Sprintf("%.4g", f), 64)
	return v
}
