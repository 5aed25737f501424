package fakeprovider

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/parley-voice/parley/media/tone"
)

// speakYandex serves the REST gateway of Yandex SpeechKit. It sends the speech of one phrase as lines of JSON.
func (s *Server) speakYandex(w http.ResponseWriter, r *http.Request) {
	f := s.fault(TTS)
	if refuse(w, r, f) {
		return
	}
	var ask struct {
		Text   string `json:"text"`
		Unsafe bool   `json:"unsafeMode"`
		Spec   struct {
			Raw struct {
				Encoding string      `json:"audioEncoding"`
				Rate     json.Number `json:"sampleRateHertz"`
			} `json:"rawAudio"`
		} `json:"outputAudioSpec"`
	}
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&ask)
	rate, accepted := pcmRate(ask.Spec.Raw.Rate.String())
	if isLong := len([]rune(ask.Text)) > 250 && !ask.Unsafe; err != nil || !accepted || ask.Spec.Raw.Encoding != "LINEAR16_PCM" || isLong {
		w.WriteHeader(http.StatusBadRequest)
		const want = "want text of at most 250 characters and rawAudio of LINEAR16_PCM, 8000 to 48000 Hz"
		_ = json.NewEncoder(w).Encode(object{"error": object{"grpcCode": 3, "httpCode": 400, "message": want}})
		return
	}
	if !wait(r.Context(), s.script.firstByte(f)) {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	words := strings.Fields(ask.Text)
	at := 0 // duration in samples
	for i, word := range words {
		switch {
		case f == Garble:
			_, _ = w.Write([]byte("{garbled\n"))
			return
		case i == 2 && f.stops():
			<-r.Context().Done()
			return
		case i == 2 && f.cuts():
			f.cut(w)
			return
		}
		pcm, _ := tone.Encode(rate, word)
		pcm = append(pcm, make([]int16, rate/16)...)
		_ = json.NewEncoder(w).Encode(yandexWord(word, pcm, at, rate))
		_ = http.NewResponseController(w).Flush()
		at += len(pcm)
	}
}

// yandexWord returns a line with one word. at is the position of the word in samples.
func yandexWord(word string, pcm []int16, at, rate int) object {
	ms := func(samples int) string { return strconv.Itoa(samples * 1000 / rate) } // JSON carries an int64 as a string
	return object{"result": object{
		"audioChunk": object{"data": littleEndian(pcm)}, "textChunk": object{"text": word}, "startMs": ms(at), "lengthMs": ms(len(pcm)),
		"wordTimings": []object{{"word": word, "startMs": ms(at), "lengthMs": ms(len(pcm) - rate/16)}},
	}}
}

// pcmRate parses a sample rate in Hz. It accepts 8000 to 48000.
func pcmRate(hz string) (rate int, accepted bool) {
	rate, err := strconv.Atoi(hz)
	return rate, err == nil && rate >= 8000 && rate <= 48000
}
