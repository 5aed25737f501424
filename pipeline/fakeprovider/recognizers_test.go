package fakeprovider

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"github.com/parley-voice/parley/media/tone"
)

// session sends text and silence as audio in real time, then the message last. It returns the close code and the types
// of the received messages, without repetitions.
func session(t *testing.T, path, text string, silence time.Duration, last string) (types []string, code int) {
	t.Helper()
	n := NewNet()
	fakes := Serve(n, Script{})
	defer func() { _ = fakes.Close() }()
	dialer := websocket.Dialer{NetDialContext: n.Dial}
	conn, resp, err := dialer.DialContext(t.Context(), "ws://fake"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	defer func() { _ = conn.Close() }()
	done := make(chan struct{})
	defer func() { <-done }()
	go func() {
		defer close(done)
		const chunk = 480 // 60 ms of audio
		pcm, _ := tone.Encode(8000, text)
		pcm = append(pcm, make([]int16, int(silence*8000/time.Second))...)
		for ; len(pcm) >= chunk; pcm = pcm[chunk:] {
			<-time.After(60 * time.Millisecond)
			if conn.WriteMessage(websocket.BinaryMessage, littleEndian(pcm[:chunk])) != nil {
				return
			}
		}
		_ = conn.WriteMessage(websocket.TextMessage, []byte(last))
	}()
	for {
		_, b, err := conn.ReadMessage()
		if closed, ok := errors.AsType[*websocket.CloseError](err); ok {
			return types, closed.Code
		}
		if err != nil {
			t.Fatal(err)
		}
		var m struct {
			Type        string `json:"type"`
			Event       string `json:"event"`
			SpeechFinal bool   `json:"speech_final"`
			EndOfTurn   bool   `json:"end_of_turn"`
			Code        int    `json:"error_code"`
		}
		if err := json.Unmarshal(b, &m); err != nil {
			t.Fatal(err)
		}
		kind := strings.TrimSuffix(m.Type+" "+m.Event, " ")
		if m.SpeechFinal || m.EndOfTurn {
			kind += " end"
		}
		if len(types) == 0 || types[len(types)-1] != kind {
			types = append(types, kind)
		}
	}
}

// TestOwnEnds checks that the fake recognizers end turns and connections like the real providers.
func TestOwnEnds(t *testing.T) {
	const format = "?encoding=linear16&sample_rate=8000"
	for _, c := range []struct {
		path, last string
		want       []string
		code       int
	}{
		{
			"/v1/listen" + format + "&endpointing=300&utterance_end_ms=1000&vad_events=true", `{"type":"CloseStream"}`,
			[]string{"Results", "SpeechStarted", "Results", "Results end", "Results", "UtteranceEnd", "Results", "Metadata"},
			websocket.CloseNormalClosure,
		},
		{"/v1/listen" + format + "&endpointing=false", `{"type":"CloseStream"}`, []string{"Results", "Metadata"}, websocket.CloseNormalClosure},
		{
			"/v2/listen" + format + "&eot_timeout_ms=700", `{"type":"CloseStream"}`,
			[]string{"Connected", "TurnInfo StartOfTurn", "TurnInfo Update", "TurnInfo EndOfTurn", "TurnInfo Update"},
			websocket.CloseNormalClosure,
		},
		{
			"/v2/listen" + format + "&eot_timeout_ms=700&eager_eot_threshold=0.4", `{"type":"CloseStream"}`, []string{
				"Connected", "TurnInfo StartOfTurn", "TurnInfo Update", "TurnInfo EagerEndOfTurn", "TurnInfo EndOfTurn", "TurnInfo Update",
			}, websocket.CloseNormalClosure,
		},
		{"/v3/ws" + format + "&max_turn_silence=500", `{"type":"Terminate"}`, []string{"Begin", "Turn", "Turn end", "Termination"}, websocket.CloseNormalClosure},
		{"/v3/ws" + format + "&speech_model=" + UnknownModel, `{"type":"Terminate"}`, []string{"Begin", "Error"}, 3006},
		{"/v3/ws" + format, `nonsense`, []string{"Begin", "Turn", "Turn end"}, websocket.CloseUnsupportedData},
	} {
		synctest.Test(t, func(t *testing.T) {
			if got, code := session(t, c.path, "hello there", 2*time.Second, c.last); !slices.Equal(got, c.want) || code != c.code {
				t.Errorf("%s: %q, closed with %d; want %q, %d", c.path, got, code, c.want, c.code)
			}
		})
	}
}

// TestNoAudio checks that the fake Deepgram ends a connection on which the client sends nothing.
func TestNoAudio(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNet()
		fakes := Serve(n, Script{})
		defer func() { _ = fakes.Close() }()
		dialer := websocket.Dialer{NetDialContext: n.Dial}
		conn, resp, err := dialer.DialContext(t.Context(), "ws://fake/v1/listen?sample_rate=8000", nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		defer func() { _ = conn.Close() }()
		began := time.Now()
		_, _, err = conn.ReadMessage()
		if !websocket.IsCloseError(err, websocket.CloseInternalServerErr) || time.Since(began) != 10*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// TestRefusedModel checks that the fake Deepgram refuses the handshake for UnknownModel with the reason.
func TestRefusedModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNet()
		fakes := Serve(n, Script{})
		defer func() { _ = fakes.Close() }()
		dialer := websocket.Dialer{NetDialContext: n.Dial}
		_, resp, err := dialer.DialContext(t.Context(), "ws://fake/v1/listen?sample_rate=8000&model="+UnknownModel, nil)
		if err == nil || resp == nil {
			t.Fatalf("%v", err)
		}
		defer resp.Body.Close()
		if text := resp.Header.Get("Dg-Error"); resp.StatusCode != http.StatusBadRequest || !strings.Contains(text, "model") {
			t.Errorf("%d: %q", resp.StatusCode, text)
		}
	})
}
