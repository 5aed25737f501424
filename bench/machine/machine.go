// Package machine describes the machine of a benchmark, its noise, and the CPU
// time of processes.
package machine

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// A Machine is the hardware and system of a run.
type Machine struct {
	Model  string `json:"model"` // model of the processor
	Cores  int    `json:"cores"`
	Memory int    `json:"memory_mib"`
	OS     string `json:"os"`
	Kernel string `json:"kernel"`
	Go     string `json:"go"`
}

// Describe returns this machine. Unknown fields are empty.
func Describe() Machine {
	m := Machine{
		Model: field("/proc/cpuinfo", "model name", ":"), Cores: runtime.NumCPU(), Go: runtime.Version(),
		OS: strings.Trim(field("/etc/os-release", "PRETTY_NAME", "="), `"`),
	}
	if m.Model == "" {
		m.Model = runtime.GOARCH
	}
	kib, _, _ := strings.Cut(field("/proc/meminfo", "MemTotal", ":"), " ")
	if n, err := strconv.Atoi(kib); err == nil {
		m.Memory = n >> 10
	}
	var u syscall.Utsname
	if syscall.Uname(&u) == nil {
		for _, c := range u.Release {
			if c == 0 {
				break
			}
			m.Kernel += string(rune(c))
		}
	}
	return m
}

// field returns the value after the first occurrence of key in file, or "".
func field(file, key, sep string) string {
	b, err := os.ReadFile(file) //nolint:gosec // of the system
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		if k, v, ok := strings.Cut(line, sep); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
