package machine

import (
	"context"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parley-voice/parley/bench/stat"
	"github.com/parley-voice/parley/bench/wait"
)

// Noise is how unsteady the machine was, by what it did to two things that
// should always take the same time. Times are in milliseconds.
type Noise struct {
	Sleep stat.Summary `json:"sleep_late_ms"` // by how much a sleep of 1 ms was longer
	Spin  stat.Summary `json:"spin_ms"`       // how long a fixed piece of work took
	Load  float64      `json:"load"`          // runnable threads of the last minute (loadavg)
}

// spins is the fixed piece of work: about a millisecond.
const spins = 400_000

// Times of whoever listens for noise.
const (
	nap   = time.Millisecond
	quiet = 300 * time.Millisecond // of Before
	each  = 100 * time.Millisecond // between two looks while something is measured: a hundredth of a core
)

// Before listens to the machine before anything is measured, for 0.3 s.
func Before(ctx context.Context) Noise {
	ctx, cancel := context.WithTimeout(ctx, quiet)
	defer cancel()
	return listen(ctx, 0)
}

// During listens to the machine until stop is called, which returns what was
// heard.
func During(ctx context.Context) (stop func() Noise) {
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
		if !wait.For(ctx, nap) {
			break
		}
		late = append(late, millis(time.Since(began)-nap))
		began = time.Now()
		done = spin(done, spins)
		work = append(work, millis(time.Since(began)))
		if pause > 0 {
			wait.For(ctx, pause)
		}
	}
	if done == 0 { // it never is: the work must be done to know it
		work = nil
	}
	return Noise{Sleep: stat.Summarize(late), Spin: stat.Summarize(work), Load: load()}
}

// seed is where the work begins.
const seed = uint64(88172645463325252)

// spin does n steps from x that depend on each other.
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
	f, _ := strconv.ParseFloat(first, 64) // 0 where it is none
	return f
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// A Lateness keeps how late a media clock is: it is a stream of the clock's
// (pace.Clock.Hook). Its zero value is ready, and belongs to the clock until the
// clock has ended.
type Lateness struct{ late []float64 }

// Tick implements pace.Stream.
func (l *Lateness) Tick(due time.Time) { l.late = append(l.late, millis(time.Since(due))) }

// Late is how late each tick began, in ms.
func (l *Lateness) Late() []float64 { return l.late }
