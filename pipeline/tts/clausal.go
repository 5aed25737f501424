// Package tts holds voices, one provider a file.
package tts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/parley-voice/parley/media/resample"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/clause"
)

const (
	waiting   = 256  // clauses that may wait to be spoken
	chunkSize = 4800 // bytes of PCM taken at once: 100 ms at 24 kHz
)

// A synth speaks one clause: 16-bit little-endian mono PCM at the rate that it
// returns. Closing the reader ends the work.
type synth func(ctx context.Context, clause string) (pcm io.ReadCloser, rate int, err error)

// clausal is an utterance of a voice that speaks whole clauses, one after the
// other, without telling word times. One goroutine speaks; Close waits for it.
type clausal struct {
	cancel context.CancelFunc
	done   <-chan struct{} // the context's
	synth  synth
	rate   int
	split  clause.Splitter
	queue  chan string
	out    chan spoken
}

// spoken is a stretch of speech, or why there is no more.
type spoken struct {
	pipeline.Speech
	err error
}

func newClausal(ctx context.Context, rate int, say synth) *clausal {
	ctx, cancel := context.WithCancel(ctx)
	c := &clausal{
		cancel: cancel, done: ctx.Done(), synth: say, rate: rate,
		queue: make(chan string, waiting), out: make(chan spoken),
	}
	go c.run(ctx)
	return c
}

// Say implements pipeline.Speaking.
func (c *clausal) Say(text string) error {
	for _, clause := range c.split.Add(text) {
		if err := c.push(clause); err != nil {
			return err
		}
	}
	return nil
}

// Flush implements pipeline.Speaking.
func (c *clausal) Flush() error {
	if rest := c.split.End(); rest != "" {
		if err := c.push(rest); err != nil {
			return err
		}
	}
	close(c.queue)
	return nil
}

// push waits where an answer runs far ahead of its voice: the model is held back.
func (c *clausal) push(clause string) error {
	select {
	case c.queue <- clause:
		return nil
	case <-c.done:
		return context.Canceled
	}
}

// Audio implements pipeline.Speaking.
func (c *clausal) Audio() iter.Seq2[pipeline.Speech, error] {
	return func(yield func(pipeline.Speech, error) bool) {
		for s := range c.out {
			if !yield(s.Speech, s.err) || s.err != nil {
				return
			}
		}
	}
}

// Close implements pipeline.Speaking.
func (c *clausal) Close() error {
	c.cancel()
	for range c.out { // until the speaker is gone
	}
	return nil
}

// run speaks the clauses as they come.
func (c *clausal) run(ctx context.Context) {
	defer close(c.out)
	defer c.cancel()
	var made time.Duration
	for {
		select {
		case clause, ok := <-c.queue:
			if !ok {
				return
			}
			d, err := c.speak(ctx, clause, made)
			if err != nil {
				c.yield(ctx, spoken{err: err})
				return
			}
			made += d
		case <-ctx.Done():
			return
		}
	}
}

// yield waits until the listener takes s.
func (c *clausal) yield(ctx context.Context, s spoken) bool {
	select {
	case c.out <- s:
		return true
	case <-ctx.Done():
		return false
	}
}

// speak speaks one clause, which begins at from, and returns how long it was.
func (c *clausal) speak(ctx context.Context, clause string, from time.Duration) (time.Duration, error) {
	audio, rate, err := c.synth(ctx, clause)
	if err != nil {
		return 0, err
	}
	defer audio.Close()
	convert := resample.New(rate, c.rate)
	samples, odd, b := 0, 0, make([]byte, chunkSize)
	for {
		n, err := audio.Read(b[odd:])
		n += odd
		pcm := convert.Resample(nil, samples16(b[:n]))
		if odd = n % 2; odd == 1 { // a read may end in the middle of a sample
			b[0] = b[n-1]
		}
		if len(pcm) > 0 {
			samples += len(pcm)
			if !c.yield(ctx, spoken{Speech: pipeline.Speech{PCM: pcm}}) {
				return 0, ctx.Err()
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, fmt.Errorf("read speech: %w", err)
		}
	}
	d := time.Duration(samples) * time.Second / time.Duration(c.rate)
	c.yield(ctx, spoken{Speech: pipeline.Speech{Words: spread(clause, from, d)}})
	return d, nil
}

// spread times the words of a clause by their length.
func spread(clause string, from, d time.Duration) []pipeline.Word {
	fields := strings.Fields(clause)
	total := len(strings.Join(fields, " ")) + 1
	place := func(n int) time.Duration { return from + d*time.Duration(n)/time.Duration(total) }
	var words []pipeline.Word
	at := 0
	for _, f := range fields {
		end := at + len(f) + 1
		words = append(words, pipeline.Word{Text: f, Start: place(at), End: place(end)})
		at = end
	}
	return words
}

// samples16 reads 16-bit little-endian PCM; half a sample at the end is left out.
func samples16(b []byte) []int16 {
	pcm := make([]int16, len(b)/2)
	for i := range pcm {
		pcm[i] = int16(uint16(b[2*i]) | uint16(b[2*i+1])<<8) //nolint:gosec // two's complement
	}
	return pcm
}
