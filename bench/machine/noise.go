package machine

import (
	"context"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parley-voice/parley/bench/stat"
)

// Noise describes how unsteady the machine is, by two tasks that should take constant time. Times
// are in milliseconds.
type Noise struct {
	Sleep stat.Summary `json:"sleep_late_ms"` // lateness of a sleep of 1 ms
	Spin  stat.Summary `json:"spin_ms"`       // duration of a CPU task of fixed size
	Load  float64      `json:"load"`          // load average of the last minute
}

// spins is the size of the CPU task: about a millisecond.
const spins = 400_000

const (
	nap   = time.Millisecond
	quiet = 300 * time.Millisecond // duration of MeasureNoise
	each  = 100 * time.Millisecond // time between two samples during a run; sampling uses 1 % of a core
)

// MeasureNoise measures the noise before a run, for 0.3 s.
func MeasureNoise(ctx context.Context) Noise {
	ctx, cancel := context.WithTimeout(ctx, quiet)
	defer cancel()
	return listen(ctx, 0)
}

// MonitorNoise measures the noise until stop is called. stop returns the result.
func MonitorNoise(ctx context.Context) (stop func() Noise) {
	ctx, cancel := context.WithCancel(ctx)
	var n Noise
	var listening sync.WaitGroup
	listening.Go(func() { n = listen(ctx, each) })
	return func() Noise {
		cancel()
		listening.Wait()
		return n
	}
}

func listen(ctx context.Context, pause time.Duration) Noise {
	var late, work []float64
	done := seed
	for ctx.Err() == nil {
		began := time.Now()
		if !Sleep(ctx, nap) {
			break
		}
		late = append(late, millis(time.Since(began)-nap))
		began = time.Now()
		done = spin(done, spins)
		work = append(work, millis(time.Since(began)))
		if pause > 0 {
			Sleep(ctx, pause)
		}
	}
	if done == 0 { // never true, but the compiler cannot remove the task
		work = nil
	}
	return Noise{Sleep: stat.Summarize(late), Spin: stat.Summarize(work), Load: load()}
}

// seed is the start value of the CPU task.
const seed = uint64(88172645463325252)

// spin does n dependent steps from x.
func spin(x uint64, n int) uint64 {
	for range n {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

func load() float64 {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(b), " ")
	f, _ := strconv.ParseFloat(first, 64) // 0 if the file is malformed
	return f
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// A Lateness records how late each tick of a media clock is. Pass it to mediaclock.Clock.Hook and
// read it after the clock has stopped. The zero value is ready to use.
type Lateness struct{ late []float64 }

// Tick implements mediaclock.Stream.
func (l *Lateness) Tick(due time.Time) { l.late = append(l.late, millis(time.Since(due))) }

// Late returns the lateness of each tick, in ms.
func (l *Lateness) Late() []float64 { return l.late }
