package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/media/mediaclock"
	"github.com/parley-voice/parley/media/rtp"
	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/conversation"
	"github.com/parley-voice/parley/pipeline/provider"
)

// A Design is the implementation that is measured.
type Design string

// Designs.
const (
	Floor Design = "floor" // one thread between bare sockets
	Legs  Design = "legs"  // the product: RTP sessions, voice activity detection, playout
)

// usage is the resource usage of the process since its start.
type usage struct {
	CPU  time.Duration `json:"cpu"`
	RSS  int64         `json:"rss"`  // resident bytes
	Idle int64         `json:"idle"` // resident bytes before the first call
	Late int64         `json:"late"`
}

// Plane is the measured process of the media benchmark. The first line of in is a JSON list of
// the other end's ports. Plane replies with its own ports, replies to each further line with its
// usage, and ends when in ends.
func Plane(ctx context.Context, d Design, in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	if !lines.Scan() {
		return errors.New("missing line with ports")
	}
	var far []int
	if err := json.Unmarshal(lines.Bytes(), &far); err != nil {
		return fmt.Errorf("ports: %w", err)
	}
	start := startLegs
	if d == Floor {
		start = startFloor
	}
	idle, err := measure()
	if err != nil {
		return err
	}
	ports, late, stop, err := start(ctx, far)
	if err != nil {
		return err
	}
	defer stop()
	answer := json.NewEncoder(out)
	if err := answer.Encode(ports); err != nil {
		return err
	}
	for lines.Scan() {
		u, err := measure()
		if err != nil {
			return err
		}
		u.Late, u.Idle = late(), idle.RSS
		if err := answer.Encode(u); err != nil {
			return err
		}
	}
	return lines.Err()
}

func measure() (usage, error) {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return usage{}, fmt.Errorf("rusage: %w", err)
	}
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return usage{}, fmt.Errorf("memory: %w", err)
	}
	fields := strings.Fields(string(b))
	if len(fields) < 2 {
		return usage{}, fmt.Errorf("memory: /proc/self/statm is %q", b)
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return usage{}, fmt.Errorf("memory: %w", err)
	}
	return usage{CPU: time.Duration(r.Utime.Nano() + r.Stime.Nano()), RSS: pages * int64(os.Getpagesize())}, nil
}

func startFloor(_ context.Context, far []int) ([]int, func() int64, func(), error) {
	streams, err := openStreams(len(far))
	if err != nil {
		return nil, nil, nil, err
	}
	quit, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		streams.Run(far, quit, func(time.Time) bool { return false })
	}()
	return streams.Ports(), func() int64 { return 0 }, func() { close(quit); <-over; streams.Close() }, nil
}

// startLegs runs the production agent on every stream. The agent speaks without end, because the
// caller is silent.
func startLegs(ctx context.Context, far []int) ([]int, func() int64, func(), error) {
	ctx, cancel := context.WithCancel(ctx)
	clock := &mediaclock.Clock{Precise: true}
	var wg sync.WaitGroup
	wg.Go(func() { clock.Run(ctx) })
	stop := func() { cancel(); wg.Wait() }
	ports, err := rtp.ParsePorts("0-0")
	if err != nil {
		return nil, nil, stop, err
	}
	transport, err := rtp.NewTransport(clock, ports, netip.MustParseAddr("127.0.0.1"), netip.Addr{})
	if err != nil {
		return nil, nil, stop, err
	}
	agent := &conversation.Agent{Clients: &provider.Clients{
		Recognizers: map[string]pipeline.Recognizer{"mute": silentRecognizer{}},
		Models:      map[string]pipeline.Model{"mute": nil},
		Voices:      map[string]pipeline.Voice{"mute": newHummingVoice()},
	}}
	mute := pipeline.Engine{Provider: "mute"}
	var own []int
	for i, port := range far {
		s, err := transport.Listen()
		if err != nil {
			stop()
			return nil, nil, stop, err
		}
		own = append(own, int(s.Local().Port()))
		s.Start(
			rtp.Params{Remote: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(port)), Codec: codec.PCMU{}}, //nolint:gosec // a port
		)
		brief := pipeline.SessionConfig{
			CallID: strconv.Itoa(i), Greeting: greeting, Engines: pipeline.Engines{ASR: mute, LLM: mute, TTS: mute},
		}
		wg.Go(func() {
			_, _ = agent.Talk(ctx, &bareLeg{Session: s}, brief) // ends when ctx ends
		})
	}
	return own, func() int64 { return clock.Stats().Late }, stop, nil
}

// bareLeg is an RTP session without signaling.
type bareLeg struct {
	*rtp.Session
	mu    sync.Mutex
	cause media.Cause
}

func (l *bareLeg) Hangup(c media.Cause) error {
	l.mu.Lock()
	if l.cause == "" {
		l.cause = c
	}
	l.mu.Unlock()
	l.Close()
	return nil
}

func (l *bareLeg) Cause() media.Cause {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause
}

// silentRecognizer recognizes nothing.
type silentRecognizer struct{}

func (silentRecognizer) Recognize(_ context.Context, s pipeline.Stream) (pipeline.Recognition, error) {
	return &silentRecognition{rate: s.Rate, results: make(chan pipeline.Result)}, nil
}

type silentRecognition struct {
	rate    int
	buf     [media.FrameTime / time.Millisecond * 8]byte
	results chan pipeline.Result
	over    sync.Once
}

func (d *silentRecognition) Rate() int { return d.rate }

// WriteFrame encodes the frame, as a real client does.
func (d *silentRecognition) WriteFrame(f media.Frame) error {
	codec.PCMU{}.Encode(d.buf[:], f)
	return nil
}
func (d *silentRecognition) Finalize() error                 { return nil }
func (d *silentRecognition) Results() <-chan pipeline.Result { return d.results }

func (d *silentRecognition) Close() error {
	d.over.Do(func() { close(d.results) })
	return nil
}

// hummingVoice hums. It hums forever for the text greeting, and for one second for other text.
type hummingVoice struct{ second []int16 }

func newHummingVoice() hummingVoice { return hummingVoice{tone.Sine(rtp.Rate, rtp.Rate, 400, 0.1)} }

// greeting is the text of the endless hum.
const greeting = "hum"

func (d hummingVoice) Open(ctx context.Context, _ pipeline.Style) (pipeline.Synthesis, error) {
	return &hummingSynthesis{d.second, ctx.Done(), make(chan bool, 1)}, nil
}

type hummingSynthesis struct {
	second  []int16
	done    <-chan struct{}
	endless chan bool
}

func (d *hummingSynthesis) Write(text string) error {
	d.endless <- text == greeting
	return nil
}
func (d *hummingSynthesis) Flush() error { return nil }
func (d *hummingSynthesis) Close() error { return nil }

func (d *hummingSynthesis) Audio() iter.Seq2[pipeline.Speech, error] {
	return func(yield func(pipeline.Speech, error) bool) {
		select {
		case endless := <-d.endless:
			going := true
			for going {
				going = yield(pipeline.Speech{PCM: d.second}, nil) && endless
			}
		case <-d.done:
		}
	}
}
