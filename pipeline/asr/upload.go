package asr

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/parley-voice/parley/media/recorder"
	"github.com/parley-voice/parley/media/resample"
	"github.com/parley-voice/parley/pipeline"
)

const (
	uploadRate = 16000 // Hz; whisper.cpp accepts no other rate
	// minUpload is the minimum duration of an upload. Shorter speech is padded with silence, because
	// some servers ignore audio below 1 s.
	minUpload   = 1100 * time.Millisecond
	maxResponse = 1 << 20
)

// An upload sends segments to a transcription server.
type upload struct {
	url    string
	header http.Header
	client *http.Client
	rate   int
	fields []field
}

// transcribe returns the text and the words of a segment.
func (u upload) transcribe(ctx context.Context, s segment) (pipeline.Result, error) {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for _, f := range u.fields {
		if err := form.WriteField(f.name, f.value); err != nil {
			return pipeline.Result{}, err
		}
	}
	file, err := form.CreateFormFile("file", "speech.wav")
	if err == nil {
		_, err = file.Write(recorder.Mono(padded(resample.PCM(s.pcm, u.rate, uploadRate)), uploadRate))
	}
	if err = errors.Join(err, form.Close()); err != nil {
		return pipeline.Result{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.url, &body)
	if err != nil {
		return pipeline.Result{}, err
	}
	req.Header = u.header.Clone()
	req.Header.Set("Content-Type", form.FormDataContentType())
	req.Header.Set("Accept", "application/json")
	resp, err := u.client.Do(req)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err
		}
		return pipeline.Result{}, fmt.Errorf("receive: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return pipeline.Result{}, pipeline.NewRefusedError(resp, pipeline.RefusalText(resp, req.Header))
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse))
	if err != nil {
		return pipeline.Result{}, fmt.Errorf("receive: %w", err)
	}
	return parseTranscription(b, s.from, s.to)
}

// padded returns pcm with silence up to minUpload.
func padded(pcm []int16) []int16 {
	return append(slices.Clip(pcm), make([]int16, max(0, int(minUpload*uploadRate/time.Second)-len(pcm)))...)
}

// A transcriptionMessage holds the fields of a response that this client uses. Times are in seconds.
type transcriptionMessage struct {
	Text     *string          `json:"text"`
	Words    []timedWord      `json:"words"`
	Segments []whisperSegment `json:"segments"`
}

// A whisperSegment is a part of the text with Whisper's probabilities for it.
type whisperSegment struct {
	Text         string  `json:"text"`
	Start        float64 `json:"start"`
	End          float64 `json:"end"`
	AvgLogprob   float64 `json:"avg_logprob"`
	NoSpeechProb float64 `json:"no_speech_prob"`
}

// isSilence reports whether Whisper invented the text for silence. The limits are those of Whisper's
// own code (github.com/openai/whisper/blob/main/whisper/transcribe.py).
func (s whisperSegment) isSilence() bool { return s.NoSpeechProb > 0.6 && s.AvgLogprob < -1 }

// parseTranscription parses the response for the audio between two positions of the stream.
func parseTranscription(b []byte, from, to time.Duration) (pipeline.Result, error) {
	var m transcriptionMessage
	if err := json.Unmarshal(b, &m); err != nil {
		return pipeline.Result{}, fmt.Errorf("not JSON: %w", err)
	}
	if m.Text == nil {
		return pipeline.Result{}, errors.New("response without text")
	}
	text := *m.Text
	if slices.ContainsFunc(m.Segments, whisperSegment.isSilence) {
		text = ""
		for _, s := range m.Segments {
			if s.isSilence() {
				m.Words = slices.DeleteFunc(m.Words, func(w timedWord) bool { return w.Start >= s.Start && w.Start < s.End })
			} else {
				text += s.Text
			}
		}
	}
	r := pipeline.Result{Final: true, Text: strings.TrimSpace(text), Start: from, End: to}
	if isRemark(r.Text) {
		return pipeline.Result{Final: true, Start: from, End: to}, nil
	}
	for _, w := range words(m.Words) {
		w.Text = strings.TrimSpace(w.Text)
		w.Start = min(max(from, from+w.Start), to)
		w.End = min(max(w.Start, from+w.End), to)
		r.Words = append(r.Words, w)
	}
	return r, nil
}

// isRemark reports whether the whole text describes a sound, such as [BLANK_AUDIO] of
// whisper.cpp.
func isRemark(text string) bool {
	for _, marks := range []string{"[]", "()"} {
		if strings.HasPrefix(text, marks[:1]) && strings.Index(text, marks[1:]) == len(text)-1 {
			return true
		}
	}
	return false
}
