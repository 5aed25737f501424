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

// CPU is the CPU time of a process.
type CPU struct {
	Own   time.Duration
	Below time.Duration // CPU time of the descendants
}

// CPUTime returns the CPU time of a process so far, zero if it does not exist.
func CPUTime(pid int) CPU {
	type process struct{ parent, ticks int }
	all := map[int]process{}
	names, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is valid
	for _, name := range names {
		text, err := os.ReadFile(name) //nolint:gosec // of /proc
		if err != nil {
			continue // the process has ended
		}
		_, rest, _ := strings.Cut(string(text), ") ") // the name of the process may contain anything
		fields := strings.Fields(rest)
		if len(fields) < 15 {
			continue
		}
		id, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		var p process
		p.parent, _ = strconv.Atoi(fields[1])
		for _, f := range fields[11:15] { // user and system time of the process and of its ended children
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

// TotalCPUTime returns the CPU time of the whole machine since boot.
func TotalCPUTime() time.Duration {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(b), "\n")
	total := 0
	for i, f := range strings.Fields(first) {
		if n, err := strconv.Atoi(f); err == nil && i != 4 && i != 5 && i < 9 { // neither idle nor iowait; user time includes guest time
			total += n
		}
	}
	return time.Duration(total) * tick
}

// RSS returns the resident bytes of a process, 0 if it does not exist.
func RSS(pid int) int64 {
	kib, _, _ := strings.Cut(field("/proc/"+strconv.Itoa(pid)+"/status", "RssAnon", ":"), " ")
	n, _ := strconv.ParseInt(kib, 10, 64) // 0 if the file is malformed
	return n << 10
}
