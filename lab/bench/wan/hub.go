// Many ends instead of two: every namespace has one device, and each ordered pair of them a way of its own that can be told to misbehave.
package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	mtu        = 1500
	wayPackets = 4096 // Packets that may be under way between two ends; further ones are lost, as in a full queue.
)

// rule is what befalls packets between two ends; none: they arrive at once.
type rule struct {
	cut    bool
	loss   float64
	delay  time.Duration
	over   int // Packets longer than this vanish, without a word by ICMP; 0: none do.
	random *rand.Rand
}

// hub carries packets between its ends by their destination.
type hub struct {
	mutex sync.Mutex // Of what changes: ends, rules, ways.
	ends  map[netip.Addr]*os.File
	table atomic.Pointer[map[[2]netip.Addr]*rule]
	ways  map[[2]netip.Addr]chan pkt
	seed  int64
}

// end makes the device of one end: in the namespace of that name, or here when it is "-".
func (h *hub) end(name string, address netip.Addr) error {
	device := fmt.Sprintf("hub%d", len(h.ends))
	file := tun(device)
	run := func(arguments string) error {
		if out, err := exec.Command("ip", strings.Fields(arguments)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %s", arguments, out)
		}
		return nil
	}
	in := ""
	if name != "-" {
		in = "-n " + name + " "
		if err := run("link set " + device + " netns " + name); err != nil {
			return err
		}
	}
	for _, arguments := range []string{
		fmt.Sprintf("addr add %s/24 dev %s", address, device),
		fmt.Sprintf("link set %s mtu %d txqueuelen 2000 up", device, mtu),
		"link set lo up",
	} {
		if err := run(in + arguments); err != nil {
			return err
		}
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	ends := map[netip.Addr]*os.File{address: file}
	for known, other := range h.ends {
		ends[known] = other
	}
	h.ends = ends
	go h.carry(address, file)
	return nil
}

func (h *hub) carry(from netip.Addr, file *os.File) {
	buffer := make([]byte, 65536)
	for {
		n, err := file.Read(buffer)
		if err != nil {
			return
		}
		if n < 20 || buffer[0]>>4 != 4 {
			continue // Nobody here speaks IPv6.
		}
		to := netip.AddrFrom4([4]byte(buffer[16:20]))
		h.pass(from, to, buffer[:n])
	}
}

func (h *hub) pass(from, to netip.Addr, packet []byte) {
	pair := [2]netip.Addr{from, to}
	told := (*h.table.Load())[pair]
	h.mutex.Lock()
	out, way := h.ends[to], h.ways[pair]
	if out == nil {
		h.mutex.Unlock()
		return
	}
	var wait time.Duration
	if told != nil {
		lost := told.cut || told.loss > 0 && told.random.Float64() < told.loss || told.over > 0 && len(packet) > told.over
		if lost {
			h.mutex.Unlock()
			return
		}
		wait = told.delay
	}
	if wait > 0 && way == nil {
		way = make(chan pkt, wayPackets)
		h.ways[pair] = way
		go deliver(way, out)
	}
	h.mutex.Unlock()
	if way == nil {
		out.Write(packet)
		return
	}
	// Once there was a delay, all of this way stay in line: packets do not overtake each other.
	select {
	case way <- pkt{time.Now().Add(wait), append([]byte(nil), packet...)}:
	default:
	}
}

func deliver(way chan pkt, out io.Writer) {
	for p := range way {
		if wait := time.Until(p.at); wait > 0 {
			time.Sleep(wait)
		}
		out.Write(p.b)
	}
}

// tell changes the rule between two ends: "rule FROM TO [cut] [loss=0.1] [delay=50ms] [over=1000]"; nothing behind TO: as it was.
func (h *hub) tell(words []string) error {
	if len(words) < 2 {
		return fmt.Errorf("rule: two addresses are wanted")
	}
	var pair [2]netip.Addr
	for i := range pair {
		address, err := netip.ParseAddr(words[i])
		if err != nil {
			return err
		}
		pair[i] = address
	}
	h.seed++
	told := &rule{random: rand.New(rand.NewSource(h.seed))}
	for _, word := range words[2:] {
		key, value, _ := strings.Cut(word, "=")
		var err error
		switch key {
		case "cut":
			told.cut = true
		case "loss":
			told.loss, err = strconv.ParseFloat(value, 64)
		case "delay":
			told.delay, err = time.ParseDuration(value)
		case "over":
			told.over, err = strconv.Atoi(value)
		default:
			err = fmt.Errorf("rule: unknown word %q", word)
		}
		if err != nil {
			return err
		}
	}
	table := map[[2]netip.Addr]*rule{}
	for known, other := range *h.table.Load() {
		table[known] = other
	}
	table[pair] = told
	if len(words) == 2 {
		delete(table, pair)
	}
	h.table.Store(&table)
	return nil
}

// serveHub obeys lines on standard input, and answers each with "ok" or "error …", until its end.
func serveHub(seed int64) {
	h := &hub{ends: map[netip.Addr]*os.File{}, ways: map[[2]netip.Addr]chan pkt{}, seed: seed << 16}
	h.table.Store(&map[[2]netip.Addr]*rule{})
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		err := fmt.Errorf("unknown line %q", lines.Text())
		switch {
		case len(words) == 3 && words[0] == "end":
			var address netip.Addr
			if address, err = netip.ParseAddr(words[2]); err == nil {
				err = h.end(words[1], address)
			}
		case len(words) > 0 && words[0] == "rule":
			err = h.tell(words[1:])
		}
		if err != nil {
			fmt.Println("error", strings.ReplaceAll(err.Error(), "\n", " "))
			continue
		}
		fmt.Println("ok")
	}
}
