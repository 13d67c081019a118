package load

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A usage is what processes have used so far, with all that descend from them: sshd and nginx work in children.
type usage struct {
	user, system float64 // seconds
	rss          int64   // octets
	pids         map[int]bool
}

func (u usage) cpu() float64 { return u.user + u.system }

// gone counts the processes of u that later does not have.
func (u usage) gone(later usage) (n int) {
	for pid := range u.pids {
		if !later.pids[pid] {
			n++
		}
	}
	return
}

// rssMiB is in the unit of the samples' "MB".
func (u usage) rssMiB() float64 { return r4(float64(u.rss) / (1 << 20)) }

const ticksPerSecond = 100 // fixed on Linux

func usageOf(roots []int) usage {
	u := usage{pids: map[int]bool{}}
	if len(roots) == 0 {
		return u
	}
	for _, pid := range withDescendants(roots) {
		f := statOf(pid)
		if f == nil {
			continue
		}
		user, _ := strconv.ParseFloat(f[11], 64)
		system, _ := strconv.ParseFloat(f[12], 64)
		pages, _ := strconv.ParseInt(f[21], 10, 64)
		u.user += user / ticksPerSecond
		u.system += system / ticksPerSecond
		u.rss += pages * int64(os.Getpagesize())
		u.pids[pid] = true
	}
	return u
}

// statOf gives the fields of /proc/PID/stat behind the name, nil when there is no such process.
func statOf(pid int) []string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil
	}
	s := string(b)
	return strings.Fields(s[strings.LastIndexByte(s, ')')+2:])
}

func withDescendants(roots []int) []int {
	children := map[int][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		pid, _ := strconv.Atoi(strings.Split(path, "/")[2])
		if f := statOf(pid); f != nil {
			parent, _ := strconv.Atoi(f[1])
			children[parent] = append(children[parent], pid)
		}
	}
	all := append([]int{}, roots...)
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all
}
