// Package conceal makes up the sound of frames that were lost, in the manner
// of ITU-T G.711 appendix I: the last pitch periods are said again and fade
// out, and the frame that comes after is blended in. Beyond that there is
// noise as loud as the party's background, never the dead silence that sounds
// like a broken line.
package conceal

const (
	history = 49 // ms of sound remembered: three of the longest periods and a blend
	steady  = 10 // ms said again at full loudness
	gone    = 60 // ms after which nothing of it is left
)

// A Concealer follows one stream. It belongs to one goroutine and allocates
// nothing after New. Frames are of any length up to 20 ms.
type Concealer struct {
	perMs int     // samples
	past  []int16 // what was heard last, made up or not, around and around
	end   int     // of it: the oldest sample is there
	heard bool    // a frame has come
	sure  bool    // the next frame follows what was heard
	loop  loop

	background background
	blend      []int16
}

// New returns a Concealer for a stream of rate (Hz), 8000 or 16000.
func New(rate int) *Concealer {
	ms := rate / 1000
	return &Concealer{
		perMs: ms, past: make([]int16, history*ms), blend: make([]int16, 10*ms), sure: true,
		loop: loop{perMs: ms, past: make([]int16, history*ms), sound: make([]int16, history*ms)}, background: newBackground(),
	}
}

// Good takes a frame that came. Where it comes after a loss, its beginning is
// blended with what was made up.
func (c *Concealer) Good(f []int16) {
	c.background.learn(f)
	if !c.sure {
		// The longer the loss, the longer the blend: 4 ms for each 10 ms lost.
		n := min(len(f), len(c.blend), c.loop.seam()+c.loop.spent*2/5)
		c.extend(c.blend[:n])
		for i := range n {
			f[i] = mix(c.blend[i], f[i], i, n)
		}
	}
	c.heard, c.sure = true, true
	c.remember(f)
}

// Lost fills f with what may have been said.
func (c *Concealer) Lost(f []int16) {
	if !c.heard {
		c.background.noise(f)
		return
	}
	c.Skip()
	c.extend(f)
	c.remember(f)
}

// Amend replaces the frame that Lost made up by one with parts that did come.
// whole says that its last sample is such a part.
func (c *Concealer) Amend(f []int16, whole bool) {
	c.end = (c.end + len(c.past) - len(f)) % len(c.past)
	c.remember(f)
	c.heard, c.sure = true, true
	if !whole { // what came is the newest that is known
		c.Skip()
	}
}

// Quiet fills f with the noise of a party that is silent and says so, at level
// in -dBov (RFC 3389 section 3).
func (c *Concealer) Quiet(f []int16, level uint8) {
	c.background.tell(level)
	c.Skip()
	c.loop.spent = max(c.loop.spent, (gone-steady)*c.perMs)
	c.extend(f)
	c.remember(f)
}

// Skip tells that the next frame does not follow what was heard last: frames
// between them are left out, and the seam is to be blended.
func (c *Concealer) Skip() {
	if c.sure {
		c.sure = false
		c.loop.begin(c.past[c.end:], c.past[:c.end])
	}
}

// Still is whether f is no louder than the background of the stream: nobody
// misses it, or another like it.
func (c *Concealer) Still(f []int16) bool { return c.background.covers(f) }

func (c *Concealer) remember(f []int16) {
	n := copy(c.past[c.end:], f)
	copy(c.past, f[n:])
	c.end = (c.end + len(f)) % len(c.past)
}

// extend fills f with what follows the last frame that came.
func (c *Concealer) extend(f []int16) {
	c.background.noise(f)
	full, end := steady*c.perMs, gone*c.perMs
	for i := range f {
		if c.loop.spent >= end {
			return
		}
		gain := min(end-full, end-c.loop.spent)
		f[i] = clip((c.loop.say()*gain + int(f[i])*(end-full-gain)) / (end - full))
	}
}

// mix is the sample i of n of a blend from a to b.
func mix(a, b int16, i, n int) int16 {
	return int16((int(a)*(n-i) + int(b)*i) / n) //nolint:gosec // between the two
}

func clip(v int) int16 { return int16(max(-32768, min(32767, v))) }
