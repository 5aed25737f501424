package calls_test

import (
	"encoding/binary"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-voice/parley/api/dashboard/dashtest"
	"github.com/parley-voice/parley/media/recorder"
)

// TestWaveform draws a recording whose caller is loud in the second half, and whose agent is silent.
func TestWaveform(t *testing.T) {
	h := dashtest.New(t)
	h.Furnish(t, "sales")
	const rate, samples = 8000, 12000
	file := recorder.Header(rate, samples*recorder.SampleLen)
	for i := range samples {
		v := uint16(0)
		if i >= samples/2 {
			v = 1 << 15 // the most negative value
		}
		file = binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16(file, v), 0)
	}
	put := func(text string) {
		t.Helper()
		if err := h.Dashboard.Bucket.Put(t.Context(), "recordings/call_1.wav", strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	put(string(file))
	b := h.SignIn(t, "vera")
	var wave struct {
		Seconds       float64
		Caller, Agent []int
	}
	a := b.Get("calls/call_1/waveform")
	if err := json.Unmarshal([]byte(a.Body), &wave); err != nil || a.Status != http.StatusOK {
		t.Fatalf("%d %s, %v", a.Status, a.Body, err)
	}
	if n := len(wave.Caller); wave.Seconds != 1.5 || n != 600 || len(wave.Agent) != n || wave.Caller[n/2-1] != 0 || wave.Caller[n/2] != 100 || wave.Caller[n-1] != 100 || wave.Agent[n-1] != 0 {
		t.Errorf("%+v", wave)
	}
	put("no recording")
	if again := b.Get("calls/call_1/waveform"); again.Body != a.Body {
		t.Error("the waveform is not kept")
	}
	h.Exec(t, "UPDATE calls SET recording_key = 'recordings/call_9.wav'")
	if a = b.Get("calls/call_1/waveform"); a.Status != http.StatusNotFound {
		t.Errorf("a missing recording: %d", a.Status)
	}
	h.Exec(t, "UPDATE calls SET recording_key = 'recordings/call_1.wav', erased_at = now()")
	if a = b.Get("calls/call_1/waveform"); a.Status != http.StatusNotFound {
		t.Errorf("an erased call: %d", a.Status)
	}
}
