package vad

import (
	"math"

	"github.com/parley-voice/parley/media"
)

// Where a voice is looked for that ended.
const (
	trail   = 40   // frames that are remembered
	holds   = 10   // frames by which the verdict may hold on to a voice that is over
	speech  = 20   // frames before the verdict's edge in which the voice was at its loudest
	faint   = 30.0 // dB under its loudest at which it still is there
	near    = 6.0  // dB under its loudest from which it breaks off
	gone    = 2    // halves in which it is gone then
	stands  = 8.0  // dB over the loudest of the noise from which it is told from that
	over    = 2.0  // dB over the loudest of the noise at which a sound is more than that
	like    = 2.0  // dB over the noise up to which what follows a voice is nothing but that
	blended = 6.0  // dB under the sound before, to which what was made up has faded where it runs into a frame
	bridged = 5    // frames made up in a row that stand for lost ones: more are a party's silence
)

// low is how much of a sample is taken off the next one: noise is loudest, and
// least steady, in its bass.
const low = 0.95

// A half is 10 ms of sound.
type half struct {
	level float64 // of its treble, dBFS
	made  bool    // it stands for sound that did not come
	mixed bool    // what was made up runs into it
}

// A Trail remembers how loud the newest frames were, and so tells, once a verdict
// came, where the voice had faded: a detector holds on to it in noise, and to
// what was made up for packets that did not come. Its zero value is ready. It
// belongs to one goroutine and allocates nothing.
type Trail struct {
	halves [2 * trail]half
	frames int
	made   bool // the last one was
}

// Frame takes the next frame, which may be empty for silence. made tells that it
// stands for sound that did not come.
func (t *Trail) Frame(f media.Frame, made bool) {
	at := 2 * (t.frames % trail)
	t.halves[at] = half{bright(f[:len(f)/2]), made, t.made && !made}
	t.halves[at+1] = half{bright(f[len(f)/2:]), made, false}
	t.made = made
	t.frames++
}

// Faded is how many frames ago the last one was that surely holds the voice of
// which the detector says that it ended back frames ago, and how many frames
// after it were lost, which may have held it too. Of a voice that sank into the
// noise, rather than break off, the detector knows more.
func (t *Trail) Faded(back int) (last, lost int) {
	back = max(0, min(back, t.known()-1))
	from := (back + 1) / 2 * 2 // what came since is noise
	noise, loudest := t.loudest(0, from), t.loudest(2*back, 2*(back+speech))
	if loudest < noise+stands {
		return back, 0
	}
	least := max(noise+over, loudest-faint)
	h, ok := t.sure(from, back, (least+loudest)/2)
	for ok && h > 0 && t.loud(h-1, least) {
		h--
	}
	if !ok || h/2 > back && !t.doubtful(back) && !t.brokeOff(h, back, max(loudest-near, noise+stands)) {
		return back, 0
	}
	return h / 2, t.after(h)
}

// brokeOff tells whether the voice that was last heard in half h was loud to its
// end, and nothing but noise came from there to the detector's edge.
func (t *Trail) brokeOff(h, back int, loud float64) bool {
	return t.loudest(h, h+gone+1) >= loud && t.mean(2*back, h) <= t.mean(0, (back+1)/2*2)+like
}

// doubtful tells whether a frame is made up, or what was made up runs into it.
func (t *Trail) doubtful(back int) bool {
	x := t.half(2*back + 1)
	return x.made || x.mixed
}

// sure is the last half that is louder than least, from one on; false where there
// is none as long as the detector may have held on.
func (t *Trail) sure(from, back int, least float64) (h int, ok bool) {
	made := 0
	for h = from; h < 2*(back+holds+made) && h+1 < 2*t.known(); h++ {
		if t.half(h).made {
			made += h % 2
		} else if t.loud(h, least) {
			return h, true
		}
	}
	return 0, false
}

// known is how many frames are remembered.
func (t *Trail) known() int { return min(t.frames, trail) }

// half is the one that was h halves ago, 0 being the newest.
func (t *Trail) half(h int) half { return t.halves[(2*t.frames-1-h)%len(t.halves)] }

// loudest is the level of the loudest half that came, from so many halves ago up
// to so many; next to nothing where none came.
func (t *Trail) loudest(from, to int) float64 {
	most := math.Inf(-1)
	for h := from; h < min(to, 2*t.known()); h++ {
		if x := t.half(h); !x.made && !x.mixed {
			most = max(most, x.level)
		}
	}
	return most
}

// mean is the same of their power.
func (t *Trail) mean(from, to int) float64 {
	sum, n := 0.0, 0.0
	for h := from; h < min(to, 2*t.known()); h++ {
		if x := t.half(h); !x.made && !x.mixed {
			sum, n = sum+math.Pow(10, x.level/10), n+1
		}
	}
	return 10 * math.Log10(sum/max(n, 1))
}

// loud tells whether a half that came is louder than least, and than what was
// made up before it has faded to.
func (t *Trail) loud(h int, least float64) bool {
	x := t.half(h)
	if x.mixed {
		before := h + 1
		for before < 2*t.known()-1 && t.half(before).made {
			before++
		}
		least = max(least, t.half(before).level-blended)
	}
	return !x.made && x.level > least
}

// after is how many frames were lost right after a half.
func (t *Trail) after(h int) int {
	n := 0
	for h%2 == 0 && n <= bridged && h >= 2*(n+1) && t.half(h-2*(n+1)).made {
		n++
	}
	if n > bridged {
		return 0
	}
	return n
}

// bright is the level of f in dBFS, of its treble rather than its bass.
func bright(f media.Frame) float64 {
	var sum float64
	for i := 1; i < len(f); i++ {
		x := float64(f[i]) - low*float64(f[i-1])
		sum += x * x
	}
	return decibels(sum, len(f))
}
