package mediatest

import "time"

// MeasureLateness starts to measure how late timers fire on this machine. worst stops the measurement and returns the
// longest delay.
func MeasureLateness() (worst func() time.Duration) {
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
