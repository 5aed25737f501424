package dtmf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/parley-voice/parley/media/resample"
)

const ms = time.Millisecond

func TestDialer(t *testing.T) {
	var d Dialer
	if s := d.Next(); s.Busy {
		t.Errorf("%+v without a key", s)
	}
	if err := d.Press("1,d"); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for range keyFrames + pauseFrames + keyFrames + 2 {
		s := d.Next()
		frames, end, event := s.Event()
		switch {
		case !s.Busy:
			got.WriteByte('.')
		case !event:
			got.WriteByte('_')
		case end:
			got.WriteByte('E')
		default:
			got.WriteByte('0' + byte(frames))
		}
		if s.IsFirst() != (s.Busy && s.Frame == 0) || s.IsDown() != (s.Busy && s.Frame < DownFrames) {
			t.Errorf("%+v", s)
		}
		if frames > DownFrames || end && frames != DownFrames {
			t.Errorf("%+v lasts %d frames", s, frames)
		}
	}
	want := "1234EEE_" + strings.Repeat(".", 100) + "1234EEE_.." // a pause of 2 s
	if got.String() != want {
		t.Errorf("pressed %s, want %s", got.String(), want)
	}
	for keys, want := range map[string]error{"12x": nil, "é": nil, strings.Repeat("1", maxQueued+1): ErrFull} {
		if err := d.Press(keys); err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%.5q: %v", keys, err)
		}
		if s := d.Next(); s.Busy {
			t.Errorf("%.5q: got part of it pressed, want none", keys)
		}
	}
	if n := testing.AllocsPerRun(100, func() { _ = d.Press("5"); d.Next() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestDeduplicator(t *testing.T) {
	type report struct {
		key    rune
		method Method
		at     time.Duration
	}
	for name, row := range map[string]struct {
		all  []report
		want string
	}{
		"one method, twice":       {[]report{{'1', Event, 0}, {'1', Event, 90 * ms}}, "11"},
		"two methods":             {[]report{{'1', Event, 0}, {'1', Info, 99 * ms}}, "1"},
		"info first":              {[]report{{'1', Info, 50 * ms}, {'1', Event, 0}}, "1"},
		"info after events":       {[]report{{'1', Event, 0}, {'1', Info, 160 * ms}, {'2', Info, 5000 * ms}}, "1"},
		"events after info":       {[]report{{'1', Info, 0}, {'1', Info, 200 * ms}, {'1', Event, 160 * ms}, {'1', Event, 360 * ms}, {'2', Event, 2000 * ms}}, "112"},
		"event long after info":   {[]report{{'1', Info, 0}, {'1', Event, 501 * ms}}, "11"},
		"info alone":              {[]report{{'1', Info, 0}, {'1', Info, 100 * ms}, {'2', Info, 110 * ms}}, "112"},
		"info with tones":         {[]report{{'1', InBand, 0}, {'1', Info, 400 * ms}, {'1', InBand, 900 * ms}, {'1', Info, 1300 * ms}}, "11"},
		"tones, then an event":    {[]report{{'1', InBand, 0}, {'1', Event, 101 * ms}}, "11"},
		"three methods":           {[]report{{'1', InBand, 0}, {'1', Info, 50 * ms}, {'1', Event, 90 * ms}}, "1"},
		"each twice, two methods": {[]report{{'1', Info, 0}, {'1', Event, 10 * ms}, {'1', Info, 80 * ms}, {'1', Event, 90 * ms}}, "11"},
		"other keys":              {[]report{{'1', Info, 0}, {'2', Event, 10 * ms}}, "12"},
		"tones with events":       {[]report{{'1', Event, 0}, {'1', InBand, 300 * ms}}, "1"},
		"tones alone":             {[]report{{'1', InBand, 0}, {'1', InBand, 100 * ms}}, "11"},
	} {
		var f Deduplicator
		got := ""
		for _, c := range row.all {
			if f.Accept(c.key, c.method, c.at) {
				got += string(c.key)
			}
		}
		if got != row.want {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}

// dial returns the audio of keys pressed one after the other, with noise.
func dial(rate int, keys string, on, off time.Duration, detune, highGain, noise float64, rng *rand.Rand) []int16 {
	var pcm []int16
	length := func(d time.Duration) int { return int(d * time.Duration(rate) / time.Second) }
	for _, k := range keys {
		code, _ := Code(k)
		r, c := padPosition(code)
		for n := range length(on) + length(off) {
			v := noise * rng.NormFloat64()
			if n < length(on) {
				at := 2 * math.Pi * detune * float64(n) / float64(rate)
				v += 0.2*math.Sin(at*rows[r]) + 0.2*highGain*math.Sin(at*columns[c])
			}
			pcm = append(pcm, int16(max(-1, min(1, v))*math.MaxInt16))
		}
	}
	return pcm
}

func detectAll(rate int, pcm []int16) string {
	e := NewDetector(rate)
	got := ""
	for n := rate / 50; len(pcm) >= n; pcm = pcm[n:] {
		if k, ok := e.Detect(pcm[:n]); ok {
			got += string(k)
		}
	}
	return got
}

func TestDetector(t *testing.T) {
	snr := func(db float64) float64 { return 0.2 * math.Pow(10, -db/20) } // noise amplitude for a ratio in dB to two sines of amplitude 0.2
	for name, row := range map[string]struct {
		on, off         time.Duration
		detune, high    float64
		noise           float64
		silent, skipped bool
	}{
		"clean":               {on: 100 * ms, off: 60 * ms, detune: 1, high: 1},
		"as short as allowed": {on: 45 * ms, off: 45 * ms, detune: 1, high: 1},
		"noise at 10 dB":      {on: 100 * ms, off: 60 * ms, detune: 1, high: 1, noise: snr(10)},
		"1.5 % high":          {on: 80 * ms, off: 60 * ms, detune: 1.015, high: 1},
		"1.5 % low":           {on: 80 * ms, off: 60 * ms, detune: 0.985, high: 1},
		"high tone 4 dB up":   {on: 80 * ms, off: 60 * ms, detune: 1, high: 1.58},
		"low tone 7 dB up":    {on: 80 * ms, off: 60 * ms, detune: 1, high: 0.45},
		"too short":           {on: 20 * ms, off: 60 * ms, detune: 1, high: 1, silent: true},
		"off by 4 %":          {on: 100 * ms, off: 60 * ms, detune: 1.04, high: 1, silent: true},
		"high tone alone":     {on: 100 * ms, off: 60 * ms, detune: 1, high: 30, silent: true},
		"low tone alone":      {on: 100 * ms, off: 60 * ms, detune: 1, high: 0.1, silent: true},
		"noise at -6 dB":      {on: 100 * ms, off: 60 * ms, detune: 1, high: 1, noise: snr(-6), silent: true},
	} {
		rng := rand.New(rand.NewPCG(1, 2))
		for _, rate := range []int{8000, 16000} {
			lead := make([]int16, rng.IntN(rate/50)) // random silence, so that a digit may begin anywhere in a frame
			got := detectAll(rate, append(lead, dial(rate, Names+Names, row.on, row.off, row.detune, row.high, row.noise, rng)...))
			want := Names + Names
			if row.silent {
				want = ""
			}
			if got != want {
				t.Errorf("%s at %d: got %q", name, rate, got)
			}
		}
	}
}

func TestDetectorReadsDialer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.StringOfN(rapid.RuneFrom([]rune(Names)), 1, 20, -1).Draw(t, "keys")
		rate := rapid.SampledFrom([]int{8000, 16000}).Draw(t, "rate")
		d, e := new(Dialer), NewDetector(rate)
		if err := d.Press(keys); err != nil {
			t.Fatal(err)
		}
		f, got := make([]int16, rate/50), ""
		for range keyFrames*len(keys) + 2 {
			Tone(f, rate, d.Next())
			if k, ok := e.Detect(f); ok {
				got += string(k)
			}
		}
		if got != keys {
			t.Fatalf("pressed %q, got %q", keys, got)
		}
	})
}

func TestDetectorIgnoresSpeech(t *testing.T) {
	espeak, err := exec.LookPath("espeak-ng")
	if err != nil {
		t.Skip("no espeak-ng")
	}
	const text = "The quick brown fox jumps over the lazy dog. One, two, three, four, five, six, seven, eight, nine, zero. " +
		"She sells sea shells by the sea shore, and we owe you an eerie yellow lorry. Please hold the line while I look that up for you."
	for _, voice := range []string{"en-us+m3", "en-us+f2", "de+f4", "fr+m1"} {
		wav, err := exec.CommandContext(t.Context(), espeak, "--stdout", "-v", voice, text).Output()
		if err != nil {
			t.Skipf("espeak-ng: %v", err)
		}
		at := bytes.Index(wav, []byte("data"))
		rate := int(binary.LittleEndian.Uint32(wav[24:]))
		wav = wav[at+8:]
		pcm := make([]int16, len(wav)/2)
		for i := range pcm {
			pcm[i] = int16(binary.LittleEndian.Uint16(wav[2*i:]))
		}
		for _, to := range []int{8000, 16000} {
			if got := detectAll(to, resample.PCM(pcm, rate, to)); got != "" {
				t.Errorf("%s at %d: got %q in %d s of speech", voice, to, got, len(pcm)/rate)
			}
		}
	}
}

func TestDetectorIgnoresNoise(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	pcm := make([]int16, 8000*30)
	for i := range pcm {
		v := 0.1 * rng.NormFloat64()
		if i > len(pcm)/2 {
			v = 0
			for _, hz := range []float64{440, 554, 660, 880, 1320} {
				v += 0.15 * math.Sin(2*math.Pi*hz*float64(i)/8000)
			}
		}
		pcm[i] = int16(max(-1, min(1, v)) * math.MaxInt16)
	}
	if got := detectAll(8000, pcm); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestNoAllocations(t *testing.T) {
	e, f, s := NewDetector(8000), make([]int16, 160), Step{Busy: true}
	if n := testing.AllocsPerRun(100, func() { Tone(f, 8000, s); e.Detect(f) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkDetector(b *testing.B) {
	e, f := NewDetector(8000), make([]int16, 160)
	Tone(f, 8000, Step{Busy: true})
	for b.Loop() {
		e.Detect(f)
	}
}
