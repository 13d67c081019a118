package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// A process is the server that is measured.
type process int

const ticksPerSecond = 100 // fixed on Linux

// cpu is user and system time so far, in seconds; 0 when it has ended.
func (p process) cpu() float64 {
	f := p.stat()
	if f == nil {
		return 0
	}
	user, _ := strconv.ParseFloat(f[11], 64)
	system, _ := strconv.ParseFloat(f[12], 64)
	return (user + system) / ticksPerSecond
}

// rss is resident memory in MiB.
func (p process) rss() float64 {
	f := p.stat()
	if f == nil {
		return 0
	}
	pages, _ := strconv.ParseFloat(f[21], 64)
	return pages * float64(os.Getpagesize()) / (1 << 20)
}

// stat gives the fields behind the name.
func (p process) stat() []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p))
	if err != nil {
		return nil
	}
	return strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+2:]))
}

const watchEvery = 20 * time.Millisecond

// watchPeak looks at its memory until the function is called, which gives the most there was.
func (p process) watchPeak() func() float64 {
	end, most := make(chan struct{}), make(chan float64)
	go func() {
		peak := 0.0
		for {
			peak = max(peak, p.rss())
			select {
			case <-end:
				most <- peak
				return
			case <-time.After(watchEvery):
			}
		}
	}()
	return func() float64 { close(end); return <-most }
}
