package machine

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the kernel's unit of CPU time, USER_HZ.
const tick = 10 * time.Millisecond

// CPU is the CPU time that a process spent.
type CPU struct {
	Own   time.Duration
	Below time.Duration // of all that it started
}

// Spent is the CPU time of a process so far; nothing of one that is not there.
func Spent(pid int) CPU {
	type process struct{ parent, ticks int }
	all := map[int]process{}
	names, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is right
	for _, name := range names {
		text, err := os.ReadFile(name) //nolint:gosec // of /proc
		if err != nil {
			continue // it ended
		}
		_, rest, _ := strings.Cut(string(text), ") ") // the name may hold anything
		fields := strings.Fields(rest)
		if len(fields) < 15 {
			continue
		}
		id, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		var p process
		p.parent, _ = strconv.Atoi(fields[1])
		for _, f := range fields[11:15] { // user, system, and both of children that ended
			n, _ := strconv.Atoi(f)
			p.ticks += n
		}
		all[id] = p
	}
	var c CPU
	for id, p := range all {
		if id == pid {
			c.Own = time.Duration(p.ticks) * tick
			continue
		}
		for above := all[id].parent; above > 1; above = all[above].parent {
			if above == pid {
				c.Below += time.Duration(p.ticks) * tick
				break
			}
		}
	}
	return c
}

// Busy is the CPU time that all of the machine spent since it began.
func Busy() time.Duration {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(b), "\n")
	total := 0
	for i, f := range strings.Fields(first) {
		if n, err := strconv.Atoi(f); err == nil && i != 4 && i != 5 && i < 9 { // neither idle nor waiting; guests are counted already
			total += n
		}
	}
	return time.Duration(total) * tick
}

// RSS is how many bytes of memory of its own a process holds, 0 where there is
// none.
func RSS(pid int) int64 {
	kib, _, _ := strings.Cut(field("/proc/"+strconv.Itoa(pid)+"/status", "RssAnon", ":"), " ")
	n, _ := strconv.ParseInt(kib, 10, 64) // 0 where it is none
	return n << 10
}
