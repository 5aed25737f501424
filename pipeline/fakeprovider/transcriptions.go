package fakeprovider

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/parley-voice/parley/media/tone"
)

const (
	maxFile    = 4 << 20 // bytes of a request
	wavHead    = 44
	wavRateAt  = 24  // offset of the sample rate in the file
	minFileLen = 0.1 // seconds
)

// transcribeFile serves OpenAI's transcription of files. It accepts only WAV files with a header of wavHead bytes.
func (s *Server) transcribeFile(w http.ResponseWriter, r *http.Request) {
	f := s.fault(ASR)
	if refuse(w, r, f) {
		return
	}
	fail := func(status int, text string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(object{"error": object{"message": text, "type": "invalid_request_error"}})
	}
	rate, pcm, ok := uploadedWAV(w, r)
	switch {
	case !ok:
		fail(http.StatusBadRequest, "file: want a mono WAV of 16-bit PCM")
		return
	case r.FormValue("model") == UnknownModel || r.FormValue("model") == "":
		fail(http.StatusNotFound, "The model does not exist.")
		return
	case float64(len(pcm)) < minFileLen*float64(rate):
		fail(http.StatusBadRequest, "Audio file is too short.")
		return
	}
	lag := s.script.FinalLag
	if f == Late {
		lag += s.script.lateBy()
	}
	if !wait(r.Context(), lag) {
		return
	}
	words := s.script.newDecoder(rate).Decode(pcm)
	if f == Mute {
		words = nil
	}
	writeJSONAnswer(w, r, f, transcriptionJSON(words, float64(len(pcm))/float64(rate), r.FormValue("response_format") == "verbose_json"))
}

// uploadedWAV returns the audio in the form field "file".
func uploadedWAV(w http.ResponseWriter, r *http.Request) (rate int, pcm []int16, ok bool) {
	r.Body = http.MaxBytesReader(w, r.Body, maxFile)
	file, _, err := r.FormFile("file")
	if err != nil {
		return 0, nil, false
	}
	defer file.Close()
	b, err := io.ReadAll(file)
	if err != nil || len(b) < wavHead || string(b[:4]) != "RIFF" {
		return 0, nil, false
	}
	for b, rate = b[wavHead:], int(binary.LittleEndian.Uint32(b[wavRateAt:])); len(b) >= 2; b = b[2:] {
		pcm = append(pcm, int16(binary.LittleEndian.Uint16(b))) //nolint:gosec // two's complement
	}
	return rate, pcm, rate >= 8000 && rate <= 48000
}

func transcriptionJSON(words []tone.Word, duration float64, verbose bool) object {
	var text strings.Builder
	all := []object{}
	for i, word := range words {
		if i > 0 {
			text.WriteString(" ")
		}
		text.WriteString(word.Text)
		all = append(all, object{"word": word.Text, "start": word.Start.Seconds(), "end": word.End.Seconds()})
	}
	if !verbose {
		return object{"text": text.String()}
	}
	return object{
		"task": "transcribe", "language": "english", "duration": duration, "text": text.String(), "words": all,
		"segments": []object{{"id": 0, "start": 0, "end": duration, "text": text.String(), "avg_logprob": -0.1, "no_speech_prob": 0.01}},
	}
}

// writeJSONAnswer writes a response. It applies the faults that occur within a response.
func writeJSONAnswer(w http.ResponseWriter, r *http.Request, f Fault, m object) {
	b, err := json.Marshal(m)
	if err != nil {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch {
	case f == Garble:
		b = []byte("{garbled")
	case f.cuts(), f.stops():
		_, _ = w.Write(b[:len(b)/2])
		if _ = http.NewResponseController(w).Flush(); f.cuts() {
			f.cut(w)
		} else {
			<-r.Context().Done()
		}
		return
	}
	_, _ = w.Write(b)
}
