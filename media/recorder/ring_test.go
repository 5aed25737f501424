package recorder

import (
	"slices"
	"sync"
	"testing"
)

// TestRing checks that the samples come out in order while another goroutine writes, and that a full ring replaces the
// samples that it drops by silence.
func TestRing(t *testing.T) {
	const frames = 2000
	r := newRing()
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range frames {
			f := make([]int16, 160)
			for j := range f {
				f[j] = int16(i + 1)
			}
			r.write(f)
		}
	})
	var got []int16
	for len(got) < frames*160 {
		got = r.read(got)
	}
	wg.Wait()
	if len(got) != frames*160 {
		t.Fatalf("%d samples, want %d", len(got), frames*160)
	}
	last := int16(0)
	for i, x := range got {
		if x != 0 && x < last {
			t.Fatalf("sample %d of frame %d comes after one of frame %d", i, x, last)
		}
		last = max(last, x)
	}
}

func TestFullRing(t *testing.T) {
	r := newRing()
	f := slices.Repeat([]int16{1}, 160)
	for range 2 * ringLen / len(f) {
		r.write(f)
	}
	got := r.read(nil)
	kept := slices.Index(got, 0)
	if len(got) != 2*ringLen/len(f)*len(f) || kept < ringLen-len(f) || kept > ringLen || slices.Contains(got[kept:], 1) {
		t.Errorf("%d samples, %d of them kept", len(got), kept)
	}
	r.write(f)
	if got = r.read(nil); !slices.Equal(got, f) {
		t.Errorf("after it was read, the ring returns %d samples", len(got))
	}
}

// TestRingAllocatesNothing checks that blocks are used again, at the rates and intervals of a recording.
func TestRingAllocatesNothing(t *testing.T) {
	for _, size := range []int{160, 320} {
		r := newRing()
		f, pcm := make([]int16, size), make([]int16, 0, 2*ringLen)
		step := func() {
			for range 25 {
				r.write(f)
			}
			pcm = r.read(pcm[:0])
		}
		for range 10 {
			step()
		}
		if n := testing.AllocsPerRun(100, step); n != 0 {
			t.Errorf("frames of %d samples: %v allocations", size, n)
		}
	}
}
