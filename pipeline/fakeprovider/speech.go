package fakeprovider

import (
	"encoding/binary"
	"encoding/json"
	"net/http"

	"github.com/parley-voice/parley/media/tone"
)

const speechRate = 24000 // sample rate in Hz

// speech serves OpenAI's speech API: 24 kHz PCM as raw bytes, in a WAV stream of unknown
// length, or in events.
func (s *Server) speech(w http.ResponseWriter, r *http.Request) {
	f := s.fault(TTS)
	if refuse(w, r, f) {
		return
	}
	var ask struct {
		Input  string `json:"input"`
		Format string `json:"response_format"`
		Stream string `json:"stream_format"`
	}
	if json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&ask) != nil || ask.Format != "pcm" && ask.Format != "wav" {
		http.Error(w, `{"error":{"message":"want JSON with response_format pcm or wav"}}`, http.StatusBadRequest)
		return
	}
	if !wait(r.Context(), s.script.firstByte(f)) {
		return
	}
	pcm, _ := tone.Encode(speechRate, ask.Input)
	b := littleEndian(append(pcm, make([]int16, speechRate/16)...))
	write := func(b []byte) { _, _ = w.Write(b) }
	switch {
	case ask.Stream == "sse":
		w.Header().Set("Content-Type", "text/event-stream")
		write = func(b []byte) { event(w, object{"type": "speech.audio.delta", "audio": b}) }
	case ask.Format == "wav":
		w.Header().Set("Content-Type", "audio/wav")
		b = append(wavHeader(), b...)
	default:
		w.Header().Set("Content-Type", "application/octet-stream")
	}
	half := len(b)/4*2 + 1 // odd, so that the cut is within a sample
	switch {
	case f == Garble:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte("{garbled"))
		return
	case f.cuts(), f.stops():
		write(b[:half])
		if _ = http.NewResponseController(w).Flush(); f.cuts() {
			f.cut(w)
		} else {
			<-r.Context().Done()
		}
		return
	}
	write(b[:half])
	_ = http.NewResponseController(w).Flush()
	write(b[half:])
	if ask.Stream == "sse" {
		event(w, object{"type": "speech.audio.done"})
	}
}

// wavHeader returns the header of a WAV stream of unknown length.
func wavHeader() []byte {
	b := []byte("RIFF\xff\xff\xff\xffWAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00")
	b = binary.LittleEndian.AppendUint32(b, speechRate)
	b = binary.LittleEndian.AppendUint32(b, 2*speechRate)
	return append(b, "\x02\x00\x10\x00data\xff\xff\xff\xff"...)
}
