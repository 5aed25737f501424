// Package tts contains the text-to-speech clients, one provider per file.
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
)

const (
	clauseQueue = 256  // most clauses that may wait for synthesis
	chunkSize   = 4800 // bytes of PCM per read: 100 ms at 24 kHz
)

// A synth synthesizes one clause as 16-bit little-endian mono PCM at the returned rate in Hz.
// Closing the reader cancels the synthesis.
type synth func(ctx context.Context, clause string) (pcm io.ReadCloser, rate int, err error)

// A wordTimer is an optional interface of the reader that a synth returns. After the end of the
// audio, Words returns the provider's words, timed from the start of the clause. The caller
// ignores them unless they are as many as the words of the text: some providers spell numbers out.
type wordTimer interface{ Words() []pipeline.Word }

// A clauseSynthesis is an utterance of a voice that accepts only whole clauses. One
// goroutine synthesizes; Close waits for that goroutine.
type clauseSynthesis struct {
	cancel context.CancelFunc
	done   <-chan struct{} // closed when the utterance is canceled or has ended
	synth  synth
	rate   int
	split  Splitter
	queue  chan string
	out    chan chunk
}

// A chunk is a stretch of speech, or the final error.
type chunk struct {
	pipeline.Speech
	err error
}

func newClauseSynthesis(ctx context.Context, rate int, say synth) *clauseSynthesis {
	ctx, cancel := context.WithCancel(ctx)
	c := &clauseSynthesis{
		cancel: cancel, done: ctx.Done(), synth: say, rate: rate,
		queue: make(chan string, clauseQueue), out: make(chan chunk),
	}
	go c.run(ctx)
	return c
}

// Write implements pipeline.Synthesis.
func (c *clauseSynthesis) Write(text string) error {
	for _, clause := range c.split.Add(text) {
		if err := c.push(clause); err != nil {
			return err
		}
	}
	return nil
}

// Flush implements pipeline.Synthesis.
func (c *clauseSynthesis) Flush() error {
	if rest := c.split.End(); rest != "" {
		if err := c.push(rest); err != nil {
			return err
		}
	}
	close(c.queue)
	return nil
}

// push queues a clause. It blocks while clauseQueue clauses wait, which slows down the model.
func (c *clauseSynthesis) push(clause string) error {
	select {
	case c.queue <- clause:
		return nil
	case <-c.done:
		return context.Canceled
	}
}

// Audio implements pipeline.Synthesis.
func (c *clauseSynthesis) Audio() iter.Seq2[pipeline.Speech, error] {
	return func(yield func(pipeline.Speech, error) bool) {
		for s := range c.out {
			if !yield(s.Speech, s.err) || s.err != nil {
				return
			}
		}
	}
}

// Close implements pipeline.Synthesis.
func (c *clauseSynthesis) Close() error {
	c.cancel()
	for range c.out { // drain until run has ended
	}
	return nil
}

// run synthesizes the clauses in order.
func (c *clauseSynthesis) run(ctx context.Context) {
	defer close(c.out)
	defer c.cancel()
	var made time.Duration
	spoken := 0 // bytes of text spoken so far
	for {
		select {
		case clause, ok := <-c.queue:
			if !ok {
				return
			}
			d, err := c.speak(ctx, clause, made)
			if err != nil {
				if d > 0 { // report the spoken words, so that a fallback voice continues after them
					c.yield(ctx, chunk{Speech: pipeline.Speech{Words: endedWords(clause, made, d, spoken)}})
				}
				c.yield(ctx, chunk{err: err})
				return
			}
			made, spoken = made+d, spoken+len(clause)
		case <-ctx.Done():
			return
		}
	}
}

// yield passes s to Audio. It reports false if ctx ends first.
func (c *clauseSynthesis) yield(ctx context.Context, s chunk) bool {
	select {
	case c.out <- s:
		return true
	case <-ctx.Done():
		return false
	}
}

// speak synthesizes one clause that starts at from within the utterance. It returns the duration
// of the speech produced, which may be positive even with an error.
func (c *clauseSynthesis) speak(ctx context.Context, clause string, from time.Duration) (time.Duration, error) {
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
			if !c.yield(ctx, chunk{Speech: pipeline.Speech{PCM: pcm}}) {
				return 0, ctx.Err()
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return c.duration(samples), fmt.Errorf("read speech: %w", err)
		}
	}
	d := c.duration(samples)
	words := spreadWords(clause, from, d)
	if t, ok := audio.(wordTimer); ok {
		retime(words, t.Words(), from)
	}
	c.yield(ctx, chunk{Speech: pipeline.Speech{Words: words}})
	return d, nil
}

func (c *clauseSynthesis) duration(samples int) time.Duration {
	return time.Duration(samples) * time.Second / time.Duration(c.rate)
}

// usualPace is the typical duration of one byte of text: 15 characters a second.
const usualPace = time.Second / 15

// endedWords estimates which words of an interrupted clause were spoken. The clause starts at from, and d of its
// speech was produced. The pace is that of the earlier clauses: spoken bytes of text in the duration from.
func endedWords(clause string, from, d time.Duration, spoken int) []pipeline.Word {
	pace := usualPace
	if spoken > 0 {
		pace = from / time.Duration(spoken)
	}
	all := spreadWords(clause, from, max(d, pace*time.Duration(len(clause))))
	n := 0
	for n < len(all) && all[n].End <= from+d {
		n++
	}
	return all[:n]
}

// retime gives words the provider's times in timed if both have the same number of words.
func retime(words, timed []pipeline.Word, from time.Duration) {
	if len(words) != len(timed) {
		return
	}
	for i, t := range timed {
		words[i].Start, words[i].End = from+t.Start, from+t.End
	}
}

// spreadWords divides the duration d among the words of a clause in proportion to their lengths.
func spreadWords(clause string, from, d time.Duration) []pipeline.Word {
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

// samples16 decodes 16-bit little-endian PCM and ignores a trailing odd byte.
func samples16(b []byte) []int16 {
	pcm := make([]int16, len(b)/2)
	for i := range pcm {
		pcm[i] = int16(uint16(b[2*i]) | uint16(b[2*i+1])<<8) //nolint:gosec // two's complement
	}
	return pcm
}
