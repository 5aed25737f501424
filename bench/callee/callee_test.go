package callee

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/bench/acoustic"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/media/mediatest"
	"github.com/parley-voice/parley/media/resample"
	"github.com/parley-voice/parley/media/tone"
)

const rate = 8000

// agent plays pcm on the leg after a delay.
func agent(leg *mediatest.Leg, after time.Duration, pcm []int16) {
	time.AfterFunc(after, func() { leg.Say(pcm) })
}

func TestPerform(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leg := mediatest.NewLeg(rate)
		defer func() { _ = leg.Hangup(media.LocalHangup) }()
		greeting, _ := tone.Encode(rate, "hello")
		answer, _ := tone.Encode(rate, "yes of course")
		question, _ := tone.Encode(rate, "are you open")
		agent(leg, 100*time.Millisecond, greeting) // the answer ends at 280 ms; the question starts at 800 ms
		agent(leg, 3*time.Second, answer)          // the answer is interrupted after 300 ms
		said := 0
		r := Perform(t.Context(), leg, Script{
			Lines: []Line{{PCM: question}, {PCM: question[:800], Into: 300 * time.Millisecond, Unanswered: true}},
			Said:  func() { said++ },
		})
		if !r.Complete || said != 2 || len(r.Said) != 2 {
			t.Fatalf("got complete %v, %d of %d lines", r.Complete, said, len(r.Said))
		}
		heard := leg.Output()
		spoken := acoustic.Measure(heard, rate).Stretches(1600)
		if len(spoken) != 2 || spoken[1].Len() > 1000 {
			t.Fatalf("other side: got %v", spoken)
		}
		if n := (len(question) + 159) / 160; len(r.Said[0].Left) != n {
			t.Errorf("got %d frames sent, want %d", len(r.Said[0].Left), n)
		}
		if gap := r.Said[0].SentAt(len(question)-1, rate).Sub(r.Said[0].SentAt(0, rate)); gap != time.Duration((len(question)-1)/160)*media.FrameTime {
			t.Errorf("got %v from first to last packet", gap)
		}
		if d := r.Said[0].SentAt(80, rate).Sub(r.Said[0].SpokenAt(80, rate)); d != 10*time.Millisecond {
			t.Errorf("middle of a packet: sent %v after it was spoken", d)
		}
		on, ok := acoustic.Measure(r.Heard.PCM, rate).Onset(rate * 2)
		if !ok || r.Said[1].SentAt(0, rate).Sub(r.Heard.WireTime(on)) > 420*time.Millisecond || r.Said[1].SentAt(0, rate).Sub(r.Heard.WireTime(on)) < 300*time.Millisecond {
			t.Errorf("got the line %v into the answer, want 300 ms", r.Said[1].SentAt(0, rate).Sub(r.Heard.WireTime(on)))
		}
	})
}

// TestDeadAir checks that the callee says its next line if no answer comes.
func TestDeadAir(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leg := mediatest.NewLeg(rate)
		defer func() { _ = leg.Hangup(media.LocalHangup) }()
		pcm, _ := tone.Encode(rate, "anybody")
		began := time.Now()
		r := Perform(t.Context(), leg, Script{Lines: []Line{{PCM: pcm}, {PCM: pcm, Into: time.Second, Hangup: true}}})
		if took := time.Since(began); !r.Complete || took < 2*patience+time.Second || took > 3*patience {
			t.Errorf("got complete %v after %v", r.Complete, took)
		}
	})
}

func TestPerformEndsWithTheLeg(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leg := mediatest.NewLeg(rate)
		time.AfterFunc(time.Second, func() { _ = leg.Hangup(media.RemoteHangup) })
		if r := Perform(t.Context(), leg, Script{Lines: []Line{{PCM: make([]int16, 160)}}}); r.Complete {
			t.Error("got a line on an ended leg, want none")
		}
	})
}

func TestEcho(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leg := mediatest.NewLeg(rate)
		defer func() { _ = leg.Hangup(media.LocalHangup) }()
		sine := tone.Sine(rate, 4000, 1000, 0.5)
		agent(leg, 500*time.Millisecond, sine)
		r := Perform(t.Context(), leg, Script{Echo: 100 * time.Millisecond})
		in, _ := acoustic.Measure(r.Heard.PCM, rate).Onset(0)
		out, ok := acoustic.Measure(leg.Output(), rate).Onset(0)
		if late := out - in; !ok || late < 700 || late > 1200 {
			t.Errorf("got an echo %d samples late, want about 800", late)
		}
		level := tone.Level(leg.Output()[out+800:out+2400]) - tone.Level(r.Heard.PCM[in+800:in+2400])
		if level < -20.5 || level > -19.5 {
			t.Errorf("got an echo at %.1f dB", level)
		}
	})
}

// track returns a track whose frames arrived at these milliseconds.
func track(ms ...int) Track {
	t := Track{Rate: rate}
	for _, m := range ms {
		t.add(make(media.Frame, 160), time.Unix(0, 0).Add(time.Duration(m)*time.Millisecond), true)
	}
	return t
}

func TestPlayTimes(t *testing.T) {
	for name, c := range map[string]struct {
		came, want []int
		loud       bool
	}{
		"in time":               {[]int{0, 20, 40}, []int{40, 60, 80}, false},
		"late, but held":        {[]int{0, 55, 58}, []int{40, 60, 80}, false},
		"too late":              {[]int{0, 90, 92}, []int{40, 90, 110}, true},
		"caught up again":       {[]int{0, 200, 200, 200, 200, 200, 200}, []int{40, 200, 220, 240, 260, 260, 260}, false},
		"speech is not skipped": {[]int{0, 200, 200, 200, 200, 200, 200}, []int{40, 200, 220, 240, 260, 280, 300}, true},
	} {
		tr := track(c.came...)
		if c.loud {
			for i := range tr.PCM {
				tr.PCM[i] = 1000
			}
		}
		var got []int
		for _, at := range tr.PlayTimes() {
			got = append(got, int(at.Sub(time.Unix(0, 0)).Milliseconds()))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got play times %v, want %v", name, got, c.want)
		}
	}
}

func TestTrackClock(t *testing.T) {
	tr := track(0, 20, 45)
	ms := func(at time.Time) float64 { return float64(at.Sub(time.Unix(0, 0))) / 1e6 }
	if got := ms(tr.WireTime(160 + 80)); got != 30 {
		t.Errorf("sample 240: got %v ms", got)
	}
	if got := ms(tr.ArrivedAt(160 + 80)); got != 20 {
		t.Errorf("packet of sample 240: got %v ms", got)
	}
	for i := range 3 * 160 {
		if got := tr.SampleAt(tr.WireTime(i)); got != i {
			t.Fatalf("sample %d is at %v, where sample %d is said to be", i, tr.WireTime(i), got)
		}
	}
	lost := track(0, 20)
	lost.add(make(media.Frame, 160), time.Unix(0, 0).Add(70*time.Millisecond), false)
	if got := ms(lost.ArrivedAt(320)); got != 40 {
		t.Errorf("lost packet: got %v ms", got)
	}
}

// TestWideLeg checks that a callee can speak and hear on a leg of 16 kHz.
func TestWideLeg(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leg := mediatest.NewLeg(16000)
		defer func() { _ = leg.Hangup(media.LocalHangup) }()
		greeting, _ := tone.Encode(16000, "hello")
		agent(leg, 100*time.Millisecond, greeting)
		question, _ := tone.Encode(rate, "are you open")
		r := Perform(t.Context(), leg, Script{Lines: []Line{{PCM: question, Unanswered: true}}})
		heard := tone.NewDecoder(rate).Decode(append(r.Heard.PCM, make([]int16, 800)...))
		if len(heard) != 1 || heard[0].Text != "hello" || r.Heard.Rate != rate {
			t.Errorf("got %v at %d Hz", heard, r.Heard.Rate)
		}
		said := tone.NewDecoder(16000).Decode(append(leg.Output(), make([]int16, 1600)...))
		if len(said) != 3 || said[2].Text != "open" {
			t.Errorf("got said %v", said)
		}
	})
}

// TestLags checks that the delay of a wideband leg is exact to one sample.
func TestLags(t *testing.T) {
	var all []int16
	at := 0
	feed := newWidening(media.FeedFunc(func(f media.Frame, _ time.Time) {
		if clear(f); at == 3 {
			f[0], f[159] = 8000, 8000
		}
		at++
	}), 16000)
	down := resample.New(16000, rate)
	var heard []int16
	for range 8 {
		f := make(media.Frame, 320)
		feed.FillFrame(f, time.Time{})
		all, heard = append(all, f...), append(heard, down.Resample(make([]int16, 0, 200), f)...)
	}
	peaks := func(pcm []int16) []int {
		var all []int
		for i := 1; i+1 < len(pcm); i++ {
			if pcm[i] > 2000 && pcm[i] >= pcm[i-1] && pcm[i] > pcm[i+1] {
				all = append(all, i)
			}
		}
		return all
	}
	wide := &narrow{Leg: mediatest.NewLeg(16000)}
	l := lagsOf(wide)
	near := func(got, want []int) bool { // filters of even length add half a sample of delay
		return slices.EqualFunc(got, want, func(a, b int) bool { return a-b <= 1 && b-a <= 1 })
	}
	if got, want := peaks(all), []int{3*320 + int(l.Said*16000/time.Second), 3*320 + 318 + int(l.Said*16000/time.Second)}; !near(got, want) {
		t.Errorf("got said at %v, want %v", got, want)
	}
	late := int((l.Said + l.Heard) * rate / time.Second)
	if got, want := peaks(heard), []int{3*160 + late, 3*160 + 159 + late}; !near(got, want) {
		t.Errorf("got heard at %v, want %v", got, want)
	}
	// Half of the delay of G.722 arises in the encoder.
	encoder, decoder := codec.G722{}.NewEncoder(), codec.G722{}.NewDecoder()
	pulse, wire, out := make([]int16, 320), make([]byte, 160), make([]int16, 320)
	copy(pulse[100:], tone.Sine(16000, 32, 1000, 0.3)) // two periods of the tone
	decoder.Decode(out, wire[:encoder.Encode(wire, pulse)])
	behind := func(by int) (sum int) {
		for i := range 200 {
			sum += int(pulse[i]) * int(out[i+by])
		}
		return sum
	}
	if by := int((l.Sent - l.Said) * 2 * 16000 / time.Second); behind(by) < behind(by-2) || behind(by) < behind(by+2) {
		t.Errorf("codec delay: want %d samples", by)
	}
	if at := lagsOf(mediatest.NewLeg(rate)); at != (Lags{}) {
		t.Errorf("narrow leg: got lags %+v, want none", at)
	}
	s := Spoken{Left: []time.Time{time.Unix(1, 0), time.Unix(2, 0), time.Unix(3, 0)}, Held: []time.Duration{0, 0, time.Millisecond}}
	for lag, want := range map[time.Duration]time.Time{0: time.Unix(3, 1e6), l.Sent: time.Unix(3, 21e6)} {
		s.lags.Sent = lag
		if at := s.SentAt(479, rate); !at.Equal(want) {
			t.Errorf("end of a line, %v late: sent at %v", lag, at)
		}
	}
}

// TestWait checks that the callee listens, and sends noise, for the time of Wait, and that the
// other side may hang up in that time.
func TestWait(t *testing.T) {
	for _, ends := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			leg := mediatest.NewLeg(rate)
			time.AfterFunc(2*time.Second, func() { _ = leg.Hangup(media.RemoteHangup) })
			r := Perform(t.Context(), leg, Script{First: true, Noise: []int16{500, -500}, Lines: []Line{{PCM: make([]int16, 160), Wait: 5 * time.Second, Ends: ends}}})
			if r.Complete != ends || len(r.Said) != 1 {
				t.Errorf("ends %v: got %+v", ends, r)
			}
			if level := tone.Level(leg.Output()[:rate]); level < -37 || level > -35 {
				t.Errorf("got noise of %.1f dBFS", level)
			}
		})
	}
}
