package calls

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/media/recorder"
)

// Limits of waveforms. A recording of 64 MiB has 35 minutes. Waveforms are kept in memory, about 5 KB each.
const (
	waveBars     = 600
	maxWaveBytes = 64 << 20
	waveTimeout  = 20 * time.Second
	keptWaves    = 200
	wavesAtOnce  = 2
)

// A wave has the loudness of both sides of a recording over time.
type wave struct {
	Seconds float64 `json:"seconds"`
	// Caller and Agent have the peak of each bar, from 0 to 100.
	Caller []int `json:"caller"`
	Agent  []int `json:"agent"`
}

// waveforms keeps the latest waveforms by the key of their recording.
type waveforms struct {
	busy chan struct{} // a place for each waveform that is computed

	mu    sync.Mutex
	kept  map[string]*wave
	order []string // keys, oldest first
}

func newWaveforms() *waveforms {
	return &waveforms{busy: make(chan struct{}, wavesAtOnce), kept: map[string]*wave{}}
}

func (w *waveforms) get(key string) *wave {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.kept[key]
}

func (w *waveforms) put(key string, x *wave) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.kept[key] == nil {
		w.order = append(w.order, key)
	}
	w.kept[key] = x
	if len(w.order) > keptWaves {
		delete(w.kept, w.order[0])
		w.order = w.order[1:]
	}
}

// errNoWave means that a recording has no waveform: it is compressed or long.
var errNoWave = errors.New("the recording has no waveform")

// waveform sends the waveform of a recording as JSON. The page works without it: it asks again after a 503.
func (c *Calls) waveform(r *ui.Request) error {
	call, err := c.Store.Call(r.Context(), r.Org(), r.ID()) // an erased call has none
	if err != nil {
		return err
	}
	x := c.waves.get(call.RecordingKey)
	if x == nil {
		select {
		case c.waves.busy <- struct{}{}:
		default:
			r.Writer.Header().Set("Retry-After", "2")
			r.Writer.WriteHeader(http.StatusServiceUnavailable)
			return nil
		}
		x, err = c.readWave(r.Context(), call)
		<-c.waves.busy
	}
	if err != nil {
		return &ui.ProblemError{Status: http.StatusNotFound, Title: r.Texts.T("calls.waveform.title"), Text: r.Texts.T("calls.waveform.text")}
	}
	c.waves.put(call.RecordingKey, x)
	r.Writer.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(r.Writer).Encode(x)
}

func (c *Calls) readWave(ctx context.Context, call control.Call) (*wave, error) {
	if call.RecordingStatus != control.RecordingReady || call.RecordingKey == "" {
		return nil, errNoWave
	}
	f, err := c.Recordings.Bucket.Open(ctx, call.RecordingKey)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil || size > maxWaveBytes {
		return nil, errors.Join(err, errNoWave)
	}
	return measure(ctx, f, size)
}

// measure reads a WAV file as package recorder writes it.
func measure(ctx context.Context, r io.Reader, size int64) (*wave, error) {
	head := make([]byte, recorder.HeaderLen)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	rate := int(binary.LittleEndian.Uint32(head[24:]))
	if string(head) != string(recorder.Header(rate, binary.LittleEndian.Uint32(head[40:]))) || rate == 0 {
		return nil, errNoWave
	}
	samples := int(size-recorder.HeaderLen) / recorder.SampleLen
	x := &wave{Seconds: float64(samples) / float64(rate), Caller: make([]int, waveBars), Agent: make([]int, waveBars)}
	buffer := make([]byte, 16<<10)
	for at := 0; at < samples; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n, err := io.ReadFull(r, buffer)
		for i := 0; i+recorder.SampleLen <= n && at < samples; i += recorder.SampleLen {
			bar := at * waveBars / samples
			x.Caller[bar] = max(x.Caller[bar], loudness(buffer[i:]))
			x.Agent[bar] = max(x.Agent[bar], loudness(buffer[i+2:]))
			at++
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	for i := range waveBars {
		x.Caller[i], x.Agent[i] = x.Caller[i]*100/(1<<15), x.Agent[i]*100/(1<<15)
	}
	return x, nil
}

// loudness returns the amount of a sample of 16 bits.
func loudness(b []byte) int {
	v := int(int16(binary.LittleEndian.Uint16(b))) //nolint:gosec // the bits of a signed number
	return max(v, -v)
}
