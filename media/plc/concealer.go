// Package plc conceals lost frames in the way of ITU-T G.711 appendix I. It repeats the last pitch periods with
// decreasing volume, and blends them into the next received frame. When the periods have faded out, it plays noise at
// the level of the background, because complete silence would sound like a dead line.
package plc

const (
	historyMs   = 49 // ms of kept output: three of the longest periods and a blend
	steady      = 10 // ms that are repeated without fading
	silentAfter = 60 // ms after which only noise is left
)

// Concealer conceals the losses of one stream. It must be used by one goroutine only. It allocates nothing after New.
// Frames may have any length up to 20 ms.
type Concealer struct {
	perMs      int     // samples per millisecond
	history    []int16 // ring of the last output, received or concealed
	end        int     // index of the oldest sample
	started    bool    // a frame was received
	continuous bool    // the next frame follows the end of history without a gap
	loop       loop

	background background
	blend      []int16
}

// New returns a Concealer for a stream with a sample rate of 8000 or 16000 Hz.
func New(rate int) *Concealer {
	ms := rate / 1000
	return &Concealer{
		perMs: ms, history: make([]int16, historyMs*ms), blend: make([]int16, 10*ms), continuous: true,
		loop: loop{perMs: ms, history: make([]int16, historyMs*ms), sound: make([]int16, historyMs*ms)}, background: newBackground(),
	}
}

// Receive takes a received frame. After a loss, it blends the beginning of the frame with the concealment.
func (c *Concealer) Receive(f []int16) {
	c.background.learn(f)
	if !c.continuous {
		// The blend gets 4 ms longer for each 10 ms lost.
		n := min(len(f), len(c.blend), c.loop.seam()+c.loop.played*2/5)
		c.extend(c.blend[:n])
		for i := range n {
			f[i] = mix(c.blend[i], f[i], i, n)
		}
	}
	c.started, c.continuous = true, true
	c.remember(f)
}

// Conceal fills f, which replaces a lost frame.
func (c *Concealer) Conceal(f []int16) {
	if !c.started {
		c.background.noise(f)
		return
	}
	c.Skip()
	c.extend(f)
	c.remember(f)
}

// Patch replaces the frame of the last Conceal by f, in which the received parts are filled in. complete reports
// whether the last sample was received.
func (c *Concealer) Patch(f []int16, complete bool) {
	c.end = (c.end + len(c.history) - len(f)) % len(c.history)
	c.remember(f)
	c.started, c.continuous = true, true
	if !complete { // concealed audio follows the received part
		c.Skip()
	}
}

// ComfortNoise fills f with noise at a level in -dBov (RFC 3389 section 3).
func (c *Concealer) ComfortNoise(f []int16, level uint8) {
	c.background.setLevel(level)
	c.Skip()
	c.loop.played = max(c.loop.played, (silentAfter-steady)*c.perMs)
	c.extend(f)
	c.remember(f)
}

// Skip says that there is a gap before the next frame. Receive then blends the frame with the audio before the gap.
func (c *Concealer) Skip() {
	if c.continuous {
		c.continuous = false
		c.loop.begin(c.history[c.end:], c.history[:c.end])
	}
}

// IsBackground reports whether f is no louder than the background. Such a frame may be dropped or repeated.
func (c *Concealer) IsBackground(f []int16) bool { return c.background.contains(f) }

func (c *Concealer) remember(f []int16) {
	n := copy(c.history[c.end:], f)
	copy(c.history, f[n:])
	c.end = (c.end + len(f)) % len(c.history)
}

func (c *Concealer) extend(f []int16) {
	c.background.noise(f)
	full, end := steady*c.perMs, silentAfter*c.perMs
	for i := range f {
		if c.loop.played >= end {
			return
		}
		gain := min(end-full, end-c.loop.played)
		f[i] = clip((c.loop.next()*gain + int(f[i])*(end-full-gain)) / (end - full))
	}
}

// mix returns sample i of a blend from a to b that has n samples.
func mix(a, b int16, i, n int) int16 {
	return int16((int(a)*(n-i) + int(b)*i) / n) //nolint:gosec // between the two
}

func clip(v int) int16 { return int16(max(-32768, min(32767, v))) }
