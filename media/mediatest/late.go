package mediatest

import "time"

// Late watches how late the machine lets a sleeper wake, until the worst is asked
// for.
func Late() (worst func() time.Duration) {
	const nap = 5 * time.Millisecond
	stop, result := make(chan struct{}), make(chan time.Duration, 1)
	go func() {
		var worst time.Duration
		tick := time.NewTimer(nap)
		for last := time.Now(); ; {
			select {
			case <-stop:
				result <- worst
				return
			case <-tick.C:
				now := time.Now()
				worst = max(worst, now.Sub(last)-nap)
				last = now
				tick.Reset(nap)
			}
		}
	}()
	return func() time.Duration { close(stop); return <-result }
}
